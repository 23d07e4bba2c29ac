/* guarded-lock2: both threads hold the guard mutex around their opposite orders. The gate makes the deadlock impossible. */
#include "corpus.h"

MUTEX(guard);
MUTEX(m);
MUTEX(p);

static void t1(void) {
    LOCK(guard);
    LOCK(m);
    LOCK(p);
    UNLOCK(p);
    UNLOCK(m);
    UNLOCK(guard);
}

static void t2(void) {
    turn(1);
    LOCK(guard);
    LOCK(p);
    LOCK(m);
    UNLOCK(m);
    UNLOCK(p);
    UNLOCK(guard);
}

int main(void) {
    RUN(t1, t2);
    printf("done\n");
    return 0;
}
