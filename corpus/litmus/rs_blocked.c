/* Figures 3.1 and 3.4: a release sequence of thread 1 (store 1 released, then store 3 relaxed) is interrupted by thread 2's store 2. Who reads 3 does not synchronise
 * with the release, and the plain accesses to nax race. Timed to this order; tools that never block release sequences miss the race. */
#include "litmus.h"

static int nax;
static atomic_int x;
static int r1;

static void t1(void) {
    nax = 1; // RACE:nax:A
    STORE(x, 1, rel);
    turn(2);
    STORE(x, 3, rlx);
}

static void t2(void) {
    turn(1);
    STORE(x, 2, rlx);
}

static void t3(void) {
    turn(3);
    r1 = LOAD(x, acq);
    if (r1 == 3) use(nax); // RACE:nax:B
}

int main(void) {
    do {
        RUN(t1, t2, t3);
        printf("%d\n", r1);
    } ROUNDS_WITH((STORE(x, 0, rlx), nax = r1 = 0));
    return 0;
}
