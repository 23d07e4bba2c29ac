/* lock_vs_unlocked1: one thread holds a mutex for its access, the other does not. */
#include "corpus.h"

MUTEX(m);
static int x;

static void locked(void) {
    LOCK(m);
    x++; // RACE:x:A
    UNLOCK(m);
}

static void unlocked(void) {
    turn(1);
    x++; // RACE:x:B
}

int main(void) {
    RUN(locked, unlocked);
    printf("%d\n", x);
    return 0;
}
