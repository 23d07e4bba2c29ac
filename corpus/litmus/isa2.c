/* ISA2: message passing over two hops. With release and acquire on both flags the message must arrive ("1 1 0" is forbidden). */
#include "litmus.h"

static atomic_int x, y, z;
static int r1, r2, r3;

static void t1(void) {
    STORE(x, 1, rlx);
    STORE(y, 1, ST);
}

static void t2(void) {
    r1 = LOAD(y, LD);
    STORE(z, 1, ST);
}

static void t3(void) {
    r2 = LOAD(z, LD);
    r3 = LOAD(x, rlx);
}

int main(void) {
    do {
        RUN(t1, t2, t3);
        printf("%d %d %d\n", r1, r2, r3);
    } ROUNDS_WITH((STORE(x, 0, rlx), STORE(y, 0, rlx), STORE(z, 0, rlx), r1 = r2 = r3 = 0));
    return 0;
}
