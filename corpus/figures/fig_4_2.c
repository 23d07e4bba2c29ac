/* Figures 4.2 to 4.4: main takes p then m, worker m then p. Timed as interleaving (a): worker completes first. */
#include "corpus.h"

MUTEX(m);
MUTEX(p);

static void worker(void) {
    LOCK(m);
    LOCK(p); // DEADLOCK:2
    UNLOCK(p);
    UNLOCK(m);
}

int main(void) {
    pthread_t thread = start(worker);
    turn(1);
    LOCK(p);
    LOCK(m); // DEADLOCK:1
    UNLOCK(m);
    UNLOCK(p);
    finish(thread);
    printf("done\n");
    return 0;
}
