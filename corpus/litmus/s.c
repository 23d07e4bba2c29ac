/* S: thread 1 stores x and y, thread 2 loads y and stores x. Having seen y, its store of x must come later when y was released and acquired ("1 2" is forbidden). */
#include "litmus.h"

static atomic_int x, y;
static int r1;

static void t1(void) {
    STORE(x, 2, rlx);
    STORE(y, 1, ST);
}

static void t2(void) {
    r1 = LOAD(y, LD);
    STORE(x, 1, rlx);
}

int main(void) {
    do {
        RUN(t1, t2);
        printf("%d %d\n", r1, LOAD(x, rlx));
    } ROUNDS_WITH((STORE(x, 0, rlx), STORE(y, 0, rlx), r1 = 0));
    return 0;
}
