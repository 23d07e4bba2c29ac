/* 36: putters write under one mutex, put, then write under two; the getter, after both gets, writes under the second. Clean: what follows the puts shares m1, what precedes them is handed over. */
#include "queue.h"

static queue q = QUEUE_INITIALIZER;
MUTEX(m);
MUTEX(m1);
static int x;

static void putter(void) {
    LOCK(m);
    x++;
    UNLOCK(m);
    put(&q, NULL);
    LOCK(m1);
    LOCK(m);
    x++;
    UNLOCK(m);
    UNLOCK(m1);
}

static void getter(void) {
    get(&q);
    get(&q);
    turn(1);
    LOCK(m1);
    x++;
    UNLOCK(m1);
}

int main(void) {
    RUN(putter, putter, getter);
    printf("%d\n", x);
    return 0;
}
