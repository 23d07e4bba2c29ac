/* pthread_mutex_timedlock gives up on a mutex that stays held and takes a free one.
 * Main holds the mutex until the other thread has posted that its attempt failed. */
#include "corpus.h"
#include <semaphore.h>

MUTEX(m);
static sem_t tried;
static int failed, took;

static void other(void) {
    struct timespec soon = deadline(CLOCK_REALTIME, 5);
    failed = pthread_mutex_timedlock(&m, &soon) == ETIMEDOUT;
    sem_post(&tried);
}

int main(void) {
    sem_init(&tried, 0, 0);
    LOCK(m);
    pthread_t thread = start(other);
    sem_wait(&tried);
    UNLOCK(m);
    finish(thread);
    struct timespec late = deadline(CLOCK_REALTIME, 1500);
    took = pthread_mutex_timedlock(&m, &late) == 0;
    UNLOCK(m);
    printf("failed %d took %d\n", failed, took);
    return 0;
}
