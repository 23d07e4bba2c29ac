/* Store buffering: each thread stores to its own location and then loads the other's. Only when everything is seq_cst (or a seq_cst fence lies between in both threads)
 * must one of them see the other's store; otherwise both may read 0, which no interleaving gives. */
#include "litmus.h"

#ifndef ST2
#define ST2 ST
#endif
#ifndef LD2
#define LD2 LD
#endif
#ifndef MIDDLE1
#define MIDDLE1
#endif
#ifndef MIDDLE2
#define MIDDLE2 MIDDLE1
#endif

static atomic_int x, y;
static int r1, r2;

static void t1(void) {
    STORE(x, 1, ST);
    MIDDLE1;
    r1 = LOAD(y, LD);
}

static void t2(void) {
    STORE(y, 1, ST2);
    MIDDLE2;
    r2 = LOAD(x, LD2);
}

int main(void) {
    do {
        RUN(t1, t2);
        printf("%d %d\n", r1, r2);
    } ROUNDS_WITH((STORE(x, 0, rlx), STORE(y, 0, rlx), r1 = r2 = 0));
    return 0;
}
