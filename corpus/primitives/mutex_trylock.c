/* pthread_mutex_trylock fails on a held mutex and succeeds on a free one.
 * A semaphore pair makes sure that the mutex is held during the first attempt and free during the second. */
#include "corpus.h"
#include <semaphore.h>

MUTEX(m);
static sem_t tried;
static int failed, took;

static void other(void) {
    failed = pthread_mutex_trylock(&m) == EBUSY;
    sem_post(&tried);
}

int main(void) {
    sem_init(&tried, 0, 0);
    LOCK(m);
    pthread_t thread = start(other);
    sem_wait(&tried);
    UNLOCK(m);
    finish(thread);
    took = pthread_mutex_trylock(&m) == 0;
    UNLOCK(m);
    printf("failed %d took %d\n", failed, took);
    return 0;
}
