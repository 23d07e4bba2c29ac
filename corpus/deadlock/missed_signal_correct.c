/* The same hand-over with a flag that is set under the mutex and re-checked: no order loses anything. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int ready;

static void waiter(void) {
    LOCK(m);
    while (!ready) pthread_cond_wait(&c, &m);
    UNLOCK(m);
}

static void signaller(void) {
    turn(1);
    LOCK(m);
    ready = 1;
    pthread_cond_signal(&c);
    UNLOCK(m);
}

int main(void) {
    RUN(waiter, signaller);
    printf("done\n");
    return 0;
}
