/* An acquire fence alone: the relaxed store releases nothing, the message races. */
#include "litmus.h"

static int message;
static atomic_int flag;
static int r1, r2;

static void sender(void) {
    message = 1; // RACE:message:A
    STORE(flag, 1, rlx);
}

static void receiver(void) {
    turn(1);
    r1 = LOAD(flag, rlx);
    FENCE(acq);
    if (r1) r2 = message; // RACE:message:B
}

int main(void) {
    do {
        RUN(sender, receiver);
        printf("%d %d\n", r1, r2);
    } ROUNDS_WITH((STORE(flag, 0, rlx), message = r1 = r2 = 0));
    return 0;
}
