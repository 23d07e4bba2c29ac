/* An order violation with a crash: the user fetches a pointer that the maker sets, atomically but without waiting for it. In the wrong order it is null. */
#include "corpus.h"
#include <stdatomic.h>

static int value = 5;
static _Atomic(int *) pointer;
static int seen;

static void maker(void) { atomic_store(&pointer, &value); }
static void user(void) {
    turn(1);
    int *mine = atomic_load(&pointer);
    seen = *(volatile int *)mine;
}

int main(void) {
    RUN(maker, user);
    printf("%d\n", seen);
    return 0;
}
