/* Independent reads of independent writes: two readers see two stores in different orders ("1 0 1 0"). Forbidden only when all accesses are seq_cst. */
#include "litmus.h"

static atomic_int x, y;
static int r1, r2, r3, r4;

static void write_x(void) { STORE(x, 1, ST); }
static void write_y(void) { STORE(y, 1, ST); }

static void read_xy(void) {
    r1 = LOAD(x, LD);
    r2 = LOAD(y, LD);
}

static void read_yx(void) {
    r3 = LOAD(y, LD);
    r4 = LOAD(x, LD);
}

int main(void) {
    do {
        RUN(write_x, write_y, read_xy, read_yx);
        printf("%d %d %d %d\n", r1, r2, r3, r4);
    } ROUNDS_WITH((STORE(x, 0, rlx), STORE(y, 0, rlx), r1 = r2 = r3 = r4 = 0));
    return 0;
}
