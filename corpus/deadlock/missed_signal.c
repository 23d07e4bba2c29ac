/* A wait without a condition to re-check: the signal only helps a thread that waits already. Timed so that it does; the other order loses the signal
 * and the waiter sleeps for ever. */
#include "corpus.h"

MUTEX(m);
COND(c);

static void waiter(void) {
    LOCK(m);
    pthread_cond_wait(&c, &m); // MISSED:1
    UNLOCK(m);
}

static void signaller(void) {
    turn(1);
    LOCK(m);
    pthread_cond_signal(&c); // MISSED:2
    UNLOCK(m);
}

int main(void) {
    RUN(waiter, signaller);
    printf("done\n");
    return 0;
}
