/* Coherence of two reads: stores 1 and 2 by one thread, two loads by another. The second load never sees an older store than the first, however relaxed. */
#include "litmus.h"

static atomic_int x;
static int r1, r2;

static void writer(void) {
    STORE(x, 1, ST);
    STORE(x, 2, ST);
}

static void reader(void) {
    r1 = LOAD(x, LD);
    r2 = LOAD(x, LD);
}

int main(void) {
    do {
        RUN(writer, reader);
        printf("%d %d\n", r1, r2);
    } ROUNDS_WITH((STORE(x, 0, rlx), r1 = r2 = 0));
    return 0;
}
