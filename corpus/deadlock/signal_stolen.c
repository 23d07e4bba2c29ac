/* One signal, two waiters with different conditions on one variable: signal can wake the one whose condition does not hold, and the other is never woken.
 * Timed so that the right one waits alone. The cure is broadcast. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int apples, pears;

static void wants_apple(void) {
    LOCK(m);
    while (!apples) pthread_cond_wait(&c, &m); // BLOCKED:1
    apples--;
    UNLOCK(m);
}

static void wants_pear(void) {
    turn(2);
    LOCK(m);
    while (!pears) pthread_cond_wait(&c, &m);
    pears--;
    UNLOCK(m);
}

static void gardener(void) {
    turn(1);
    LOCK(m);
    apples = 1;
    pthread_cond_signal(&c);
    UNLOCK(m);
    turn(2);
    LOCK(m);
    pears = 1;
    pthread_cond_signal(&c);
    UNLOCK(m);
}

int main(void) {
    RUN(wants_apple, wants_pear, gardener);
    printf("%d %d\n", apples, pears);
    return 0;
}
