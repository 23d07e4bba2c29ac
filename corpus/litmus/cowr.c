/* Coherence of write and read: a thread that stores 1 and loads sees its own store or a later one, never the initial value; the final value is the last in modification order. */
#include "litmus.h"

static atomic_int x;
static int r1;

static void t1(void) {
    STORE(x, 1, rlx);
    r1 = LOAD(x, rlx);
}

static void t2(void) { STORE(x, 2, rlx); }

int main(void) {
    do {
        RUN(t1, t2);
        printf("%d %d\n", r1, LOAD(x, rlx));
    } ROUNDS_WITH((STORE(x, 0, rlx), r1 = 0));
    return 0;
}
