/* Load buffering: each thread loads one location and then stores the other. Relaxed, both loads may see the other's store ("1 1"), which needs a load to read from a store
 * that has not happened yet; tools that run the program, as this one does, cannot show it. */
#include "litmus.h"

static atomic_int x, y;
static int r1, r2;

static void t1(void) {
    r1 = LOAD(x, LD);
    STORE(y, 1, ST);
}

static void t2(void) {
    r2 = LOAD(y, LD);
    STORE(x, 1, ST);
}

int main(void) {
    do {
        RUN(t1, t2);
        printf("%d %d\n", r1, r2);
    } ROUNDS_WITH((STORE(x, 0, rlx), STORE(y, 0, rlx), r1 = r2 = 0));
    return 0;
}
