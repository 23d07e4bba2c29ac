/* tsandl1: AB-BA in two threads that do some work under a third mutex in between. */
#include "corpus.h"

MUTEX(a);
MUTEX(b);
MUTEX(counter_lock);
static int counter;

static void bump(void) {
    LOCK(counter_lock);
    counter++;
    UNLOCK(counter_lock);
}

static void t1(void) {
    LOCK(a);
    bump();
    LOCK(b); // DEADLOCK:1
    bump();
    UNLOCK(b);
    UNLOCK(a);
}

static void t2(void) {
    turn(1);
    LOCK(b);
    bump();
    LOCK(a); // DEADLOCK:2
    bump();
    UNLOCK(a);
    UNLOCK(b);
}

int main(void) {
    RUN(t1, t2);
    printf("%d\n", counter);
    return 0;
}
