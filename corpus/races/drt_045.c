/* 45: as 44, but the getter only reads under the mutex. Clean. */
#include "queue.h"

static queue q = QUEUE_INITIALIZER;
MUTEX(m);
static int x;

static void putter(void) {
    use(x);
    put(&q, NULL);
    LOCK(m);
    x = 1;
    UNLOCK(m);
}

static void getter(void) {
    get(&q);
    turn(1);
    LOCK(m);
    use(x);
    UNLOCK(m);
}

int main(void) {
    RUN(putter, getter);
    printf("%d\n", x);
    return 0;
}
