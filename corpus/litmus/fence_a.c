/* Figure 3.11 (a): a release fence before a relaxed store, an acquire load. They synchronise when the load sees the store, so the plain message is safe. */
#include "litmus.h"

static int message;
static atomic_int flag;
static int r1, r2;

static void sender(void) {
    message = 1;
    FENCE(rel);
    STORE(flag, 1, rlx);
}

static void receiver(void) {
    turn(1);
    r1 = LOAD(flag, acq);
    if (r1) r2 = message;
}

int main(void) {
    do {
        RUN(sender, receiver);
        printf("%d %d\n", r1, r2);
    } ROUNDS_WITH((STORE(flag, 0, rlx), message = r1 = r2 = 0));
    return 0;
}
