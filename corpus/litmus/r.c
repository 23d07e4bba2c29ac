/* R: thread 1 stores x and y; thread 2 stores y and loads x. The second store of y winning while x is not seen ("2 0") is forbidden only when everything is seq_cst. */
#include "litmus.h"

static atomic_int x, y;
static int r1;

static void t1(void) {
    STORE(x, 1, ST);
    STORE(y, 1, ST);
}

static void t2(void) {
    STORE(y, 2, ST);
    r1 = LOAD(x, LD);
}

int main(void) {
    do {
        RUN(t1, t2);
        printf("%d %d\n", LOAD(y, rlx), r1);
    } ROUNDS_WITH((STORE(x, 0, rlx), STORE(y, 0, rlx), r1 = 0));
    return 0;
}
