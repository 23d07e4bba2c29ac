/* 306: two threads hold both mutexes, a third holds none. */
#include "corpus.h"

MUTEX(m1);
MUTEX(m2);
static int x;

static void t1(void) {
    LOCK(m1);
    LOCK(m2);
    x = 1; // RACE:x:A
    UNLOCK(m2);
    UNLOCK(m1);
}

static void t2(void) {
    turn(1);
    LOCK(m1);
    LOCK(m2);
    x = 2; // RACE:x:B
    UNLOCK(m2);
    UNLOCK(m1);
}

static void t3(void) {
    turn(2);
    x = 3; // RACE:x:C
}

int main(void) {
    RUN(t1, t2, t3);
    printf("%d\n", x);
    return 0;
}
