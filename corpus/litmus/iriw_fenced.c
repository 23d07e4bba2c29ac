/* Independent reads of independent writes with a fence between the two loads of each reader. In C11 even seq_cst fences do not forbid that the stores are seen in different orders ("1 0 1 0") when the stores are relaxed
 * (C++20 does); with seq_cst stores they do. */
#include "litmus.h"

#ifndef MIDDLE1
#define MIDDLE1
#endif

static atomic_int x, y;
static int r1, r2, r3, r4;

static void write_x(void) { STORE(x, 1, ST); }
static void write_y(void) { STORE(y, 1, ST); }

static void read_xy(void) {
    r1 = LOAD(x, LD);
    MIDDLE1;
    r2 = LOAD(y, LD);
}

static void read_yx(void) {
    r3 = LOAD(y, LD);
    MIDDLE1;
    r4 = LOAD(x, LD);
}

int main(void) {
    do {
        RUN(write_x, write_y, read_xy, read_yx);
        printf("%d %d %d %d\n", r1, r2, r3, r4);
    } ROUNDS_WITH((STORE(x, 0, rlx), STORE(y, 0, rlx), r1 = r2 = r3 = r4 = 0));
    return 0;
}
