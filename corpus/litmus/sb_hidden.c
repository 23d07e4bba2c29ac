/* Store buffering with an older store that a seq_cst store hides, after figure 3.15. Thread 1 stores 1 and then 2. If all is seq_cst and thread 1 does not see y, its store of 2 comes before thread 2's load,
 * which then reads neither 0 nor 1, as they happen before 2. The store of 3 does not happen before 2 and may be read, even if 2 is later in modification order ("0 3 2"; C++20 forbids it). */
#include "litmus.h"

static atomic_int x, y;
static int r1, r2;

static void t1(void) {
    STORE(x, 1, rlx);
    STORE(x, 2, ST);
    r1 = LOAD(y, LD);
}

static void t2(void) {
    STORE(y, 1, ST);
    r2 = LOAD(x, LD);
}

static void t3(void) { STORE(x, 3, rlx); }

int main(void) {
    do {
        RUN(t1, t2, t3);
        printf("%d %d %d\n", r1, r2, LOAD(x, rlx));
    } ROUNDS_WITH((STORE(x, 0, rlx), STORE(y, 0, rlx), r1 = r2 = 0));
    return 0;
}
