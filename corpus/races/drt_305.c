/* 305: two mutexes used inconsistently by four threads: both, the first, both, the second. Only the second and the fourth thread have no mutex in common; the third hides it. */
#include "corpus.h"

MUTEX(m1);
MUTEX(m2);
static int x;

static void t1(void) {
    LOCK(m1);
    LOCK(m2);
    x = 1;
    UNLOCK(m2);
    UNLOCK(m1);
}

static void t2(void) {
    turn(1);
    LOCK(m1);
    x = 2; // RACE:x:A
    UNLOCK(m1);
}

static void t3(void) {
    turn(2);
    LOCK(m1);
    LOCK(m2);
    x = 3;
    UNLOCK(m2);
    UNLOCK(m1);
}

static void t4(void) {
    turn(3);
    LOCK(m2);
    x = 4; // RACE:x:B
    UNLOCK(m2);
}

int main(void) {
    RUN(t1, t2, t3, t4);
    printf("%d\n", x);
    return 0;
}
