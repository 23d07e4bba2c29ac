/* pthread_tryjoin_np fails while the thread runs and joins it once it has ended.
 * The thread waits for a semaphore that is posted only after the failed attempt, so both results are certain. */
#include "corpus.h"
#include <semaphore.h>

static sem_t go;
static int work;

static void child(void) {
    sem_wait(&go);
    work = 7;
}

int main(void) {
    sem_init(&go, 0, 0);
    pthread_t thread = start(child);
    MUST(pthread_tryjoin_np(thread, NULL) == EBUSY);
    sem_post(&go);
    while (pthread_tryjoin_np(thread, NULL) == EBUSY) usleep(1000);
    printf("%d\n", work);
    return 0;
}
