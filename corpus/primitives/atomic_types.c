/* Atomic bool, flag, pointer and double: the compiler lowers some of them to compare-exchange loops. Clean: only atomics are shared. */
#include "corpus.h"
#include <stdatomic.h>
#include <stdbool.h>

static atomic_bool seen;
static atomic_flag flag = ATOMIC_FLAG_INIT;
static _Atomic(char *) pointer;
static _Atomic double real;
static char cells[8];
static atomic_int winners;

static void worker(void) {
    if (!atomic_flag_test_and_set(&flag)) atomic_fetch_add(&winners, 1);
    seen = true;
    atomic_fetch_add(&pointer, 1);
    for (int i = 0; i < 8; i++) real += 0.5;
}

int main(void) {
    pointer = cells;
    RUN(worker, worker);
    printf("%d %d %td %.1f\n", seen, winners, pointer - cells, real);
    return 0;
}
