/* Coherence of read and write: a thread that has read the other's store and then stores puts its own after it. */
#include "litmus.h"

static atomic_int x;
static int r1;

static void t1(void) {
    r1 = LOAD(x, rlx);
    STORE(x, 1, rlx);
}

static void t2(void) { STORE(x, 2, rlx); }

int main(void) {
    do {
        RUN(t1, t2);
        printf("%d %d\n", r1, LOAD(x, rlx));
    } ROUNDS_WITH((STORE(x, 0, rlx), r1 = 0));
    return 0;
}
