/* Message passing with an atomic message: the flag is stored after the message and loaded before it. Seeing the flag but not the message ("1 0") is forbidden exactly
 * when the flag's store releases and its load acquires. */
#include "litmus.h"

static atomic_int message, flag;
static int r1, r2;

static void sender(void) {
    STORE(message, 1, rlx);
    STORE(flag, 1, ST);
}

static void receiver(void) {
    r1 = LOAD(flag, LD);
    r2 = LOAD(message, rlx);
}

int main(void) {
    do {
        RUN(sender, receiver);
        printf("%d %d\n", r1, r2);
    } ROUNDS_WITH((STORE(message, 0, rlx), STORE(flag, 0, rlx), r1 = r2 = 0));
    return 0;
}
