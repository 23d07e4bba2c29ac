/* Waiting for a condition gives back its own mutex but not the outer one, which the signaller needs. Harmless when the signaller took the outer mutex first. */
#include "corpus.h"

MUTEX(outer);
MUTEX(inner);
COND(c);
static int ready;

static void waiter(void) {
    turn(1);
    LOCK(outer);
    LOCK(inner);
    while (!ready) pthread_cond_wait(&c, &inner); // DEADLOCK:1
    UNLOCK(inner);
    UNLOCK(outer);
}

static void signaller(void) {
    LOCK(outer); // DEADLOCK:2
    UNLOCK(outer);
    turn(2);
    LOCK(inner);
    ready = 1;
    pthread_cond_signal(&c);
    UNLOCK(inner);
}

int main(void) {
    RUN(waiter, signaller);
    printf("%d\n", ready);
    return 0;
}
