/* mul-lockorders (figures 4.18 to 4.20): both threads take p before m in a first phase and m before p in a second; a barrier separates the phases.
 * The opposite orders never meet: no deadlock. */
#include "corpus.h"

static pthread_barrier_t b;
MUTEX(m);
MUTEX(p);

static void phases(void) {
    LOCK(p);
    LOCK(m);
    UNLOCK(m);
    UNLOCK(p);
    pthread_barrier_wait(&b);
    LOCK(m);
    LOCK(p);
    UNLOCK(p);
    UNLOCK(m);
}

int main(void) {
    pthread_barrier_init(&b, NULL, 2);
    pthread_t thread = start(phases);
    phases();
    finish(thread);
    printf("done\n");
    return 0;
}
