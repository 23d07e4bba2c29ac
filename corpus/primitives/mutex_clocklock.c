/* pthread_mutex_clocklock against the monotonic clock, failing and succeeding.
 * Main holds the mutex until the other thread has posted that its attempt failed. */
#include "corpus.h"
#include <semaphore.h>

MUTEX(m);
static sem_t tried;
static int failed, took;

static void other(void) {
    struct timespec soon = deadline(CLOCK_MONOTONIC, 5);
    failed = pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &soon) == ETIMEDOUT;
    sem_post(&tried);
}

int main(void) {
    sem_init(&tried, 0, 0);
    LOCK(m);
    pthread_t thread = start(other);
    sem_wait(&tried);
    UNLOCK(m);
    finish(thread);
    struct timespec late = deadline(CLOCK_MONOTONIC, 1500);
    took = pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &late) == 0;
    UNLOCK(m);
    printf("failed %d took %d\n", failed, took);
    return 0;
}
