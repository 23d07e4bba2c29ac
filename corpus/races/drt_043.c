/* 43: the putter writes, puts and reads; the getter gets and reads. Clean: after the put nobody writes. */
#include "queue.h"

static queue q = QUEUE_INITIALIZER;
static int x;

static void putter(void) {
    x = 1;
    put(&q, NULL);
    use(x);
}

static void getter(void) {
    get(&q);
    turn(1);
    use(x);
}

int main(void) {
    RUN(putter, getter);
    printf("%d\n", x);
    return 0;
}
