/* Figure 3.6: thread 2 sees the released 1 and stores 1 again, relaxed. Thread 3 acquires a 1, but of the wrong store: no synchronisation, nax races. */
#include "litmus.h"

static int nax;
static atomic_int x;
static int r1;

static void t1(void) {
    nax = 1; // RACE:nax:A
    STORE(x, 1, rel);
}

static void t2(void) {
    turn(1);
    if (LOAD(x, rlx) == 1) STORE(x, 1, rlx);
}

static void t3(void) {
    turn(2);
    r1 = LOAD(x, acq);
    if (r1 == 1) use(nax); // RACE:nax:B
}

int main(void) {
    do {
        RUN(t1, t2, t3);
        printf("%d\n", r1);
    } ROUNDS_WITH((STORE(x, 0, rlx), nax = r1 = 0));
    return 0;
}
