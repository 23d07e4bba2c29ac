/* Main joins a thread while it holds the mutex that the thread needs. Harmless if the thread was through before main took the mutex. */
#include "corpus.h"

MUTEX(m);
static int x;

static void worker(void) {
    LOCK(m); // DEADLOCK:1
    x++;
    UNLOCK(m);
}

int main(void) {
    pthread_t thread = start(worker);
    turn(1);
    LOCK(m);
    pthread_join(thread, NULL); // DEADLOCK:2
    x++;
    UNLOCK(m);
    printf("%d\n", x);
    return 0;
}
