/* A relaxed read-modify-write by another thread continues a release sequence: who acquires its result synchronises with the release before it. */
#include "litmus.h"

static int nax;
static atomic_int x;
static int r1;

static void t1(void) {
    nax = 1;
    STORE(x, 1, rel);
}

static void t2(void) {
    turn(1);
    atomic_fetch_add_explicit(&x, 10, rlx);
}

static void t3(void) {
    turn(2);
    r1 = LOAD(x, acq);
    if (r1 == 11) use(nax);
}

int main(void) {
    do {
        RUN(t1, t2, t3);
        printf("%d\n", r1);
    } ROUNDS_WITH((STORE(x, 0, rlx), nax = r1 = 0));
    return 0;
}
