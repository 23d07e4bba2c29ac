/* 28: two putters write under the mutex, put, and read under the mutex; the getter takes both elements and then reads without a lock. Clean: after the puts nobody writes. */
#include "queue.h"

static queue q = QUEUE_INITIALIZER;
MUTEX(m);
static int x;

static void putter(void) {
    LOCK(m);
    x++;
    UNLOCK(m);
    put(&q, NULL);
    LOCK(m);
    use(x);
    UNLOCK(m);
}

static void getter(void) {
    get(&q);
    get(&q);
    turn(1);
    use(x);
}

int main(void) {
    RUN(putter, putter, getter);
    printf("%d\n", x);
    return 0;
}
