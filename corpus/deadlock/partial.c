/* A cycle between two threads while a third goes on working and main waits for all: a partial deadlock, then a total one. */
#include "corpus.h"

MUTEX(a);
MUTEX(b);
MUTEX(counter_lock);
static int counter;

static void t1(void) {
    LOCK(a);
    LOCK(b); // DEADLOCK:1
    UNLOCK(b);
    UNLOCK(a);
}

static void t2(void) {
    turn(1);
    LOCK(b);
    LOCK(a); // DEADLOCK:2
    UNLOCK(a);
    UNLOCK(b);
}

static void busy(void) {
    for (int i = 0; i < 30; i++) {
        LOCK(counter_lock);
        counter++;
        UNLOCK(counter_lock);
        usleep(1000);
    }
}

int main(void) {
    RUN(t1, t2, busy);
    printf("%d\n", counter);
    return 0;
}
