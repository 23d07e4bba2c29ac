/* 22: the initialiser and its later updates hold the mutex, one user in between does not. */
#include "corpus.h"

MUTEX(m);
static int x;

static void owner(void) {
    for (int i = 0; i < 2; i++) {
        LOCK(m);
        x++; // RACE:x:A
        UNLOCK(m);
        turn(2);
    }
}

static void user(void) {
    turn(1);
    x++; // RACE:x:B
}

int main(void) {
    RUN(owner, user);
    printf("%d\n", x);
    return 0;
}
