/* Two threads that hold 100 mutexes at once, always in the same order: no cycle, and no limit on how many may be held. */
#include "corpus.h"

enum { LOCKS = 100 };
static pthread_mutex_t locks[LOCKS];
static int rounds;

static void worker(void) {
    for (int i = 0; i < LOCKS; i++) LOCK(locks[i]);
    rounds++;
    for (int i = LOCKS - 1; i >= 0; i--) UNLOCK(locks[i]);
}

int main(void) {
    for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&locks[i], NULL);
    RUN(worker, worker);
    printf("%d\n", rounds);
    return 0;
}
