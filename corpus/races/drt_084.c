/* 84: plain data handed over by an atomic increment that the other thread polls with an atomic add of zero. Clean by C11: the read-modify-writes are sequentially consistent. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

static atomic_int gate;
static char apart[512];
static int x;

static void giver(void) {
    x = 1;
    atomic_fetch_add(&gate, 1);
}

static void taker(void) {
    while (atomic_fetch_add(&gate, 0) == 0) sched_yield();
    x++;
}

int main(void) {
    RUN(giver, taker);
    printf("%d %d\n", x, apart[0]);
    return 0;
}
