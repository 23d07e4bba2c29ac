/* 78: objects travel through a queue, many of them, each used by the producer before and by the consumer after. Clean. */
#include "queue.h"

enum { ITEMS = 12 };
static queue q = QUEUE_INITIALIZER;
static int cell[ITEMS], sum;

static void producer(void) {
    for (int i = 0; i < ITEMS; i++) {
        cell[i] = i;
        put(&q, &cell[i]);
    }
}

static void consumer(void) {
    for (int i = 0; i < ITEMS; i++) {
        int *item = get(&q);
        *item += 1;
        sum += *item;
    }
}

int main(void) {
    RUN(producer, consumer);
    printf("%d\n", sum);
    return 0;
}
