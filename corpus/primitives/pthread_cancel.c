/* Cancelling a thread that waits for a condition: it takes the mutex again, runs its handler, which gives the mutex back.
 * Nothing ever signals, so the wait can only end by cancellation. */
#include "corpus.h"

MUTEX(m);
COND(never);
static int waiting, tidied;

static void give_back(void *mutex) {
    tidied = 1;
    pthread_mutex_unlock((pthread_mutex_t *)mutex);
}

static void *child(void *unused) {
    (void)unused;
    LOCK(m);
    pthread_cleanup_push(give_back, &m);
    waiting = 1;
    while (1) pthread_cond_wait(&never, &m);
    pthread_cleanup_pop(1);
    return NULL;
}

int main(void) {
    pthread_t thread = start_with(child, NULL);
    for (int seen = 0; !seen;) {
        LOCK(m);
        seen = waiting;
        UNLOCK(m);
        if (!seen) usleep(1000);
    }
    void *result = NULL;
    pthread_cancel(thread);
    pthread_join(thread, &result);
    LOCK(m);
    printf("%s %d\n", result == PTHREAD_CANCELED ? "cancelled" : "ended", tidied);
    UNLOCK(m);
    return 0;
}
