/* 40: as 38, but the getters write before the putters' second round. Clean for the same reasons. */
#include "queue.h"

static queue q1 = QUEUE_INITIALIZER, q2 = QUEUE_INITIALIZER;
MUTEX(m1);
MUTEX(m2);
static int x;

static void putter(queue *q) {
    LOCK(m1);
    x++;
    UNLOCK(m1);
    put(q, NULL);
    put(q, NULL);
    turn(1);
    LOCK(m1);
    LOCK(m2);
    x++;
    UNLOCK(m2);
    UNLOCK(m1);
}

static void putter1(void) { putter(&q1); }
static void putter2(void) { putter(&q2); }

static void getter(void) {
    get(&q1);
    get(&q2);
    LOCK(m2);
    x++;
    UNLOCK(m2);
}

int main(void) {
    RUN(putter1, putter2, getter, getter);
    printf("%d\n", x);
    return 0;
}
