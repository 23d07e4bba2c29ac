/* Figures 4.16 and 4.17: worker takes the mutexes in the opposite order, but only after main has set the flag while holding both.
 * A reordering in which worker reads the flag first takes no mutex at all, so the deadlock that the lock orders suggest is infeasible. */
#include "corpus.h"
#include <stdatomic.h>

MUTEX(m);
MUTEX(p);
static atomic_int flag;
static int entered;

static void worker(void) {
    turn(1);
    if (atomic_load(&flag)) {
        LOCK(m);
        LOCK(p);
        entered = 1;
        UNLOCK(p);
        UNLOCK(m);
    }
}

int main(void) {
    pthread_t thread = start(worker);
    LOCK(p);
    LOCK(m);
    atomic_store(&flag, 1);
    UNLOCK(m);
    UNLOCK(p);
    finish(thread);
    printf("%d\n", entered);
    return 0;
}
