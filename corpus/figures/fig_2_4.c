/* Figure 2.4: a semaphore that starts at zero orders the poster's task before the waiter's. Clean. */
#include "corpus.h"
#include <semaphore.h>

static sem_t s;
static int task;

static void poster(void) {
    task = 1;
    sem_post(&s);
}

static void waiter(void) {
    sem_wait(&s);
    task = task * 10 + 2;
}

int main(void) {
    sem_init(&s, 0, 0);
    RUN(waiter, poster);
    printf("%d\n", task);
    return 0;
}
