/* A compare-exchange that fails is a load with its failure order: seeing the flag through an acquiring failure orders the message, through a relaxed one it does not ("1 0"). */
#include "litmus.h"

static atomic_int message, flag;
static int r1, r2;

static void sender(void) {
    STORE(message, 1, rlx);
    STORE(flag, 1, rel);
}

static void receiver(void) {
    int expected = 7;
    atomic_compare_exchange_strong_explicit(&flag, &expected, 8, acq, LD);
    r1 = expected;
    r2 = LOAD(message, rlx);
}

int main(void) {
    do {
        RUN(sender, receiver);
        printf("%d %d\n", r1, r2);
    } ROUNDS_WITH((STORE(message, 0, rlx), STORE(flag, 0, rlx), r1 = r2 = 0));
    return 0;
}
