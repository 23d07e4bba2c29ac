/* hg02: two threads, two mutexes, opposite orders, one after the other. */
#include "corpus.h"

MUTEX(m1);
MUTEX(m2);

static void t1(void) {
    LOCK(m1);
    LOCK(m2); // DEADLOCK:1
    UNLOCK(m1);
    UNLOCK(m2);
}

static void t2(void) {
    turn(1);
    LOCK(m2);
    LOCK(m1); // DEADLOCK:2
    UNLOCK(m1);
    UNLOCK(m2);
}

int main(void) {
    RUN(t1, t2);
    printf("done\n");
    return 0;
}
