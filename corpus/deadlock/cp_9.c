/* cp-9: the accesses to x hold different mutexes and look racy to a lockset, but to reach both at once each thread would have to get past the other's outer mutex.
 * What the opposite orders do allow is a deadlock. */
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
