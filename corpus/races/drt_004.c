/* 4: synchronisation by a producer-consumer queue. Clean: what was written before the put is visible after the get. */
#include "queue.h"

static queue q = QUEUE_INITIALIZER;
static int x;

static void putter(void) {
    x = 1;
    put(&q, &x);
}

static void getter(void) {
    turn(1);
    get(&q);
    x = 2;
}

int main(void) {
    RUN(putter, getter);
    printf("%d\n", x);
    return 0;
}
