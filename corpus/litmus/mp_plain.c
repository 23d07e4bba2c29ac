/* Message passing with a plain message that is read only if the flag was seen. Without release and acquire on the flag this is a data race.
 * The receiver comes a turn later, so that it sees the flag (unless weak behaviours are simulated, when it may not). */
#include "litmus.h"

static int message;
static atomic_int flag;
static int r1, r2;

static void sender(void) {
    message = 1; // RACE:message:A
    STORE(flag, 1, ST);
}

static void receiver(void) {
    turn(1);
    r1 = LOAD(flag, LD);
    if (r1) r2 = message; // RACE:message:B
}

int main(void) {
    do {
        RUN(sender, receiver);
        printf("%d %d\n", r1, r2);
    } ROUNDS_WITH((STORE(flag, 0, rlx), message = r1 = r2 = 0));
    return 0;
}
