/* Rule 8, after figure 3.15: what a seq_cst load may read when a seq_cst store has hidden what happens before it. The store of 1 happens before that of 2, so a load that comes after
 * the store of 2 does not read 1; the store of 3 does not, and may be read before or after it. */
#include "litmus.h"

static atomic_int x;
static int r1, r2;

static void t1(void) {
    STORE(x, 1, rlx);
    STORE(x, 2, ST);
}

static void t2(void) { STORE(x, 3, rlx); }

static void t3(void) {
    r1 = LOAD(x, LD);
    r2 = LOAD(x, LD);
}

int main(void) {
    do {
        RUN(t1, t2, t3);
        printf("%d %d %d\n", r1, r2, LOAD(x, rlx));
    } ROUNDS_WITH((STORE(x, 0, rlx), r1 = r2 = 0));
    return 0;
}
