/* Two relaxed increments: read-modify-writes read the value right before their own in modification order, so neither is lost. */
#include "litmus.h"

static atomic_int x;
static int r1, r2;

static void t1(void) { r1 = atomic_fetch_add_explicit(&x, 1, rlx); }
static void t2(void) { r2 = atomic_fetch_add_explicit(&x, 1, rlx); }

int main(void) {
    do {
        RUN(t1, t2);
        printf("%d %d %d\n", r1, r2, LOAD(x, rlx));
    } ROUNDS_WITH((STORE(x, 0, rlx), r1 = r2 = 0));
    return 0;
}
