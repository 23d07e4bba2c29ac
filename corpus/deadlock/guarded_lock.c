/* guarded-lock: a guard mutex is meant to make the opposite orders safe, but one thread gives it up between its two acquisitions. The deadlock is possible. */
#include "corpus.h"

MUTEX(guard);
MUTEX(m);
MUTEX(p);

static void t1(void) {
    LOCK(guard);
    LOCK(m);
    UNLOCK(guard);
    LOCK(p); // DEADLOCK:1
    UNLOCK(p);
    UNLOCK(m);
}

static void t2(void) {
    turn(1);
    LOCK(guard);
    LOCK(p);
    LOCK(m); // DEADLOCK:2
    UNLOCK(m);
    UNLOCK(p);
    UNLOCK(guard);
}

int main(void) {
    RUN(t1, t2);
    printf("done\n");
    return 0;
}
