/* Causally-precedes, figure 5: the accesses to x are linked through a third thread and two mutexes. Every link can be undone. */
#include "corpus.h"

MUTEX(l);
MUTEX(m);
static int x, y, z;

static void t1(void) {
    x = 1; // RACE:x:A
    LOCK(l);
    y++;
    UNLOCK(l);
}

static void t2(void) {
    turn(1);
    LOCK(l);
    UNLOCK(l);
    LOCK(m);
    z++;
    UNLOCK(m);
}

static void t3(void) {
    turn(2);
    LOCK(m);
    UNLOCK(m);
    x = 2; // RACE:x:B
}

int main(void) {
    RUN(t1, t2, t3);
    printf("%d %d %d\n", x, y, z);
    return 0;
}
