/* A condition is initialised while a thread waits on it: that thread is lost, whoever signals later. Correct: the next use of the
 * condition begins when the thread has been woken and has left. The wrong twin ends although the thread still waits. */
#include "corpus.h"
#include <sched.h>

static pthread_cond_t object;
MUTEX(lock);
static int waits, go;

static void waiter(void) {
    LOCK(lock);
    waits = 1;
    while (!go) pthread_cond_wait(&object, &lock);
    UNLOCK(lock);
}

int main(void) {
    pthread_cond_init(&object, NULL);
    pthread_t one = start(waiter);
    // It has begun to wait when it has given the mutex back.
    for (int begun = 0; !begun;) {
        LOCK(lock);
        begun = waits;
        UNLOCK(lock);
        sched_yield();
    }
#ifdef WRONG
    pthread_cond_init(&object, NULL); // MISUSE:object
    pthread_detach(one);
#else
    LOCK(lock);
    go = 1;
    pthread_cond_signal(&object);
    UNLOCK(lock);
    finish(one);
    pthread_cond_init(&object, NULL);
    pthread_cond_signal(&object);
#endif
    return 0;
}
