/* Coherence between readers: two threads store 1 and 2, two others load twice. They may see either order, but not opposite ones. */
#include "litmus.h"

static atomic_int x;
static int r1, r2, r3, r4;

static void write_1(void) { STORE(x, 1, ST); }
static void write_2(void) { STORE(x, 2, ST); }

static void reader_a(void) {
    r1 = LOAD(x, LD);
    r2 = LOAD(x, LD);
}

static void reader_b(void) {
    r3 = LOAD(x, LD);
    r4 = LOAD(x, LD);
}

int main(void) {
    do {
        RUN(write_1, write_2, reader_a, reader_b);
        printf("%d %d %d %d\n", r1, r2, r3, r4);
    } ROUNDS_WITH((STORE(x, 0, rlx), r1 = r2 = r3 = r4 = 0));
    return 0;
}
