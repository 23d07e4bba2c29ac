/* Write-to-read causality: thread 2 has seen x and stores y; thread 3 sees y. With release and acquire on y, and acquire on the first read, it must see x as well ("1 1 0" is forbidden). */
#include "litmus.h"

static atomic_int x, y;
static int r1, r2, r3;

static void t1(void) { STORE(x, 1, ST); }

static void t2(void) {
    r1 = LOAD(x, LD);
    STORE(y, 1, ST);
}

static void t3(void) {
    r2 = LOAD(y, LD);
    r3 = LOAD(x, rlx);
}

int main(void) {
    do {
        RUN(t1, t2, t3);
        printf("%d %d %d\n", r1, r2, r3);
    } ROUNDS_WITH((STORE(x, 0, rlx), STORE(y, 0, rlx), r1 = r2 = r3 = 0));
    return 0;
}
