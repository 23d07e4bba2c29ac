/* 44: the putter reads, puts, then writes under the mutex; the getter gets, then writes under the mutex. Clean: the unlocked read is handed over, the writes share the mutex. */
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
    x = 2;
    UNLOCK(m);
}

int main(void) {
    RUN(putter, getter);
    printf("%d\n", x);
    return 0;
}
