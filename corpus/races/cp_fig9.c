/* Causally-precedes, figure 9: no race although the accesses to x hold different mutexes: whoever is at its access keeps the other from getting to his.
 * The opposite lock orders do allow a deadlock, which is due. */
#include "corpus.h"

MUTEX(l);
MUTEX(m);
static int x;

static void t1(void) {
    LOCK(l);
    LOCK(m); // DEADLOCK:1
    UNLOCK(m);
    x = 1;
    UNLOCK(l);
}

static void t2(void) {
    turn(1);
    LOCK(m);
    LOCK(l); // DEADLOCK:2
    UNLOCK(l);
    x = 2;
    UNLOCK(m);
}

int main(void) {
    RUN(t1, t2);
    printf("%d\n", x);
    return 0;
}
