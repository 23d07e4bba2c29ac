/* tsandl2: a cycle of three mutexes through three threads. No two of them can deadlock, all three together can. */
#include "corpus.h"

MUTEX(a);
MUTEX(b);
MUTEX(c);

static void t1(void) {
    LOCK(a);
    LOCK(b); // DEADLOCK:1
    UNLOCK(b);
    UNLOCK(a);
}

static void t2(void) {
    turn(1);
    LOCK(b);
    LOCK(c); // DEADLOCK:2
    UNLOCK(c);
    UNLOCK(b);
}

static void t3(void) {
    turn(2);
    LOCK(c);
    LOCK(a); // DEADLOCK:3
    UNLOCK(a);
    UNLOCK(c);
}

int main(void) {
    RUN(t1, t2, t3);
    printf("done\n");
    return 0;
}
