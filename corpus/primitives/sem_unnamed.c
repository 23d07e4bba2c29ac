/* Unnamed semaphore: post, wait, trywait on zero (fails) and on one, timedwait and clockwait that time out, value.
 * Clean: the consumer reads what was written before the post that it consumed. */
#include "corpus.h"
#include <semaphore.h>

static sem_t items;
static int data;

static void producer(void) {
    data = 5;
    sem_post(&items);
}

static void consumer(void) {
    sem_wait(&items);
    data++;
}

int main(void) {
    sem_init(&items, 0, 0);
    MUST(sem_trywait(&items) == -1 && errno == EAGAIN);
    struct timespec soon = deadline(CLOCK_REALTIME, 4);
    MUST(sem_timedwait(&items, &soon) == -1 && errno == ETIMEDOUT);
    soon = deadline(CLOCK_MONOTONIC, 4);
    MUST(sem_clockwait(&items, CLOCK_MONOTONIC, &soon) == -1 && errno == ETIMEDOUT);
    RUN(consumer, producer);
    sem_post(&items);
    MUST(sem_trywait(&items) == 0);
    sem_post(&items);
    soon = deadline(CLOCK_REALTIME, 1500);
    MUST(sem_timedwait(&items, &soon) == 0);
    int left = -1;
    sem_getvalue(&items, &left);
    sem_destroy(&items);
    printf("%d %d\n", data, left);
    return 0;
}
