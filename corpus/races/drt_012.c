/* 12: first protected by a mutex on both sides, then handed over by a queue. Clean: two disciplines, one after the other. */
#include "queue.h"

static queue q = QUEUE_INITIALIZER;
MUTEX(m);
static int x;

static void putter(void) {
    LOCK(m);
    x++;
    UNLOCK(m);
    put(&q, NULL);
}

static void getter(void) {
    LOCK(m);
    x++;
    UNLOCK(m);
    get(&q);
    x++;
}

int main(void) {
    RUN(putter, getter);
    printf("%d\n", x);
    return 0;
}
