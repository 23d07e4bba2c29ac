/* 2+2W: two threads store to two locations in opposite orders. Each thread's first store winning ("1 1") contradicts every interleaving, and is forbidden only when all stores are seq_cst. */
#include "litmus.h"

static atomic_int x, y;

static void t1(void) {
    STORE(x, 1, ST);
    STORE(y, 2, ST);
}

static void t2(void) {
    STORE(y, 1, ST);
    STORE(x, 2, ST);
}

int main(void) {
    do {
        RUN(t1, t2);
        printf("%d %d\n", LOAD(x, rlx), LOAD(y, rlx));
    } ROUNDS_WITH((STORE(x, 0, rlx), STORE(y, 0, rlx)));
    return 0;
}
