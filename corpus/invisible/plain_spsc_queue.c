/* Items pass from one thread to another through a queue of one producer and one consumer in an object that was built by the plain compiler. Correct:
 * the consumer touches an item after it has taken it, the producer before it hands it over. */
#include "corpus.h"
#include "plain_queue.h"
#include <sched.h>

enum { ITEMS = 40 };
static struct plain_queue queue;
static int items[ITEMS];

static void producer(void) {
    for (int i = 0; i < ITEMS; i++) {
        items[i] = i;
        while (!plain_push(&queue, &items[i])) sched_yield();
    }
}

static void consumer(void) {
    int sum = 0;
    for (int i = 0; i < ITEMS; i++) {
        int *item;
        while (!(item = plain_pop(&queue))) sched_yield();
        sum += *item;
        *item = 0;
    }
    printf("%d\n", sum);
}

int main(void) {
    RUN(producer, consumer);
    return 0;
}
