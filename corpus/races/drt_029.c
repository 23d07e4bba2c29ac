/* 29: as 28 with two getters and two queues: each putter puts twice into its queue, each getter takes from both. Clean. */
#include "queue.h"

static queue q1 = QUEUE_INITIALIZER, q2 = QUEUE_INITIALIZER;
MUTEX(m);
static int x;

static void putter(queue *q) {
    LOCK(m);
    x++;
    UNLOCK(m);
    put(q, NULL);
    put(q, NULL);
    LOCK(m);
    use(x);
    UNLOCK(m);
}

static void putter1(void) { putter(&q1); }
static void putter2(void) { putter(&q2); }

static void getter(void) {
    get(&q1);
    get(&q2);
    turn(1);
    use(x);
}

int main(void) {
    RUN(putter1, putter2, getter, getter);
    printf("%d\n", x);
    return 0;
}
