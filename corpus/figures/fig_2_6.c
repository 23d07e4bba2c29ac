/* Figure 2.6: two mutexes taken in opposite orders. Worker comes a turn later, so the run ends; each thread holding its first mutex deadlocks. */
#include "corpus.h"

MUTEX(m);
MUTEX(p);

static void worker(void) {
    turn(1);
    LOCK(p);
    LOCK(m); // DEADLOCK:2
    UNLOCK(m);
    UNLOCK(p);
}

int main(void) {
    pthread_t thread = start(worker);
    LOCK(m);
    LOCK(p); // DEADLOCK:1
    UNLOCK(p);
    UNLOCK(m);
    finish(thread);
    printf("done\n");
    return 0;
}
