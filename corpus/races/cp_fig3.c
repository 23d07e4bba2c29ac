/* Causally-precedes, figure 3: critical sections on one mutex that touch different variables. They can change places, so the accesses to x around them are concurrent;
 * happens-before takes the observed order of the sections for granted. */
#include "corpus.h"

MUTEX(l);
static int x, y, z;

static void t1(void) {
    x = 1; // RACE:x:A
    LOCK(l);
    y = 1;
    UNLOCK(l);
}

static void t2(void) {
    turn(1);
    LOCK(l);
    z = 1;
    UNLOCK(l);
    x = 2; // RACE:x:B
}

int main(void) {
    RUN(t1, t2);
    printf("%d %d %d\n", x, y, z);
    return 0;
}
