/* Two strong compare-exchanges from 0, relaxed: exactly one wins, the other reads the winner's value. */
#include "litmus.h"

static atomic_int x;
static int r1, r2;

static void t1(void) {
    int expected = 0;
    atomic_compare_exchange_strong_explicit(&x, &expected, 1, rlx, rlx);
    r1 = expected;
}

static void t2(void) {
    int expected = 0;
    atomic_compare_exchange_strong_explicit(&x, &expected, 2, rlx, rlx);
    r2 = expected;
}

int main(void) {
    do {
        RUN(t1, t2);
        printf("%d %d %d\n", r1, r2, LOAD(x, rlx));
    } ROUNDS_WITH((STORE(x, 0, rlx), r1 = r2 = 0));
    return 0;
}
