/* 2+2W with read-modify-writes as second stores. Both additions may come before the other thread's store in modification order ("1 1"): no interleaving gives that, and only seq_cst forbids it. */
#include "litmus.h"

static atomic_int x, y;

static void t1(void) {
    STORE(x, 1, ST);
    atomic_fetch_add_explicit(&y, 10, ST);
}

static void t2(void) {
    STORE(y, 1, ST);
    atomic_fetch_add_explicit(&x, 10, ST);
}

int main(void) {
    do {
        RUN(t1, t2);
        printf("%d %d\n", LOAD(x, rlx), LOAD(y, rlx));
    } ROUNDS_WITH((STORE(x, 0, rlx), STORE(y, 0, rlx)));
    return 0;
}
