/* pthread_timedjoin_np and pthread_clockjoin_np time out while the thread runs, then succeed.
 * The thread cannot end before the semaphore is posted, which happens after both time-outs. How long it takes then nobody promises. */
#include "corpus.h"
#include <semaphore.h>

static sem_t go;
static int work;

static void child(void) {
    sem_wait(&go);
    work = 8;
}

int main(void) {
    sem_init(&go, 0, 0);
    pthread_t thread = start(child);
    struct timespec soon = deadline(CLOCK_REALTIME, 5);
    MUST(pthread_timedjoin_np(thread, NULL, &soon) == ETIMEDOUT);
    soon = deadline(CLOCK_MONOTONIC, 5);
    MUST(pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
    sem_post(&go);
    int joined;
    do {
        struct timespec late = deadline(CLOCK_REALTIME, 1500);
        joined = pthread_timedjoin_np(thread, NULL, &late);
    } while (joined == ETIMEDOUT);
    MUST(joined == 0);
    printf("%d\n", work);
    return 0;
}
