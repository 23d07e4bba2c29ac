/* Figure 3.9: a release sequence is continued by a read-modify-write and then blocked by a third thread's relaxed store. Who acquires that store does not synchronise; nax races. */
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
    atomic_fetch_add_explicit(&x, 1, rlx);
}

static void t3(void) {
    turn(2);
    STORE(x, 7, rlx);
}

static void t4(void) {
    turn(3);
    r1 = LOAD(x, acq);
    if (r1 == 7) use(nax); // RACE:nax:B
}

int main(void) {
    do {
        RUN(t1, t2, t3, t4);
        printf("%d\n", r1);
    } ROUNDS_WITH((STORE(x, 0, rlx), nax = r1 = 0));
    return 0;
}
