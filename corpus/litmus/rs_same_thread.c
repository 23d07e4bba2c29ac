/* The release sequence of figure 3.2: store 1 released, store 3 relaxed by the same thread, nobody in between. By the C++11 rules the sequence goes on, and who reads 3 synchronises. */
#include "litmus.h"

static int nax;
static atomic_int x;
static int r1;

static void t1(void) {
    nax = 1;
    STORE(x, 1, rel);
    STORE(x, 3, rlx);
}

static void t3(void) {
    turn(1);
    r1 = LOAD(x, acq);
    if (r1 == 3) use(nax);
}

int main(void) {
    do {
        RUN(t1, t3);
        printf("%d\n", r1);
    } ROUNDS_WITH((STORE(x, 0, rlx), nax = r1 = 0));
    return 0;
}
