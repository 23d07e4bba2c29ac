/* 14: two readers each put into their own queue; the writer takes from both before it writes. Clean. */
#include "queue.h"

static queue q1 = QUEUE_INITIALIZER, q2 = QUEUE_INITIALIZER;
static int x;

static void putter1(void) {
    use(x);
    put(&q1, NULL);
}

static void putter2(void) {
    use(x);
    put(&q2, NULL);
}

static void getter(void) {
    get(&q1);
    get(&q2);
    x++;
}

int main(void) {
    RUN(putter1, putter2, getter);
    printf("%d\n", x);
    return 0;
}
