/* An error-checking mutex refuses a second lock (EDEADLK) and a foreign unlock (EPERM), and nothing else happens.
 * The program handles the errors; they change no state, so there is nothing to report as a race or deadlock. */
#include "corpus.h"
#include <semaphore.h>

static pthread_mutex_t m;
static int relock, foreign, unheld;

static void other(void) { foreign = pthread_mutex_unlock(&m); }

int main(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&m, &attributes);
    unheld = pthread_mutex_unlock(&m);
    LOCK(m);
    relock = pthread_mutex_lock(&m);
    finish(start(other));
    UNLOCK(m);
    pthread_mutex_destroy(&m);
    printf("%d %d %d\n", relock == EDEADLK, foreign == EPERM, unheld == EPERM);
    return 0;
}
