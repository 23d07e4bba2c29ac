/* An object is used by a thread that nothing orders behind its initialisation. Correct: it is initialised before the threads begin. */
#include "corpus.h"
#include <semaphore.h>

static sem_t object;

static void user(void) {
    turn(1);
    sem_post(&object); // RACE:object:A
}

static void owner(void) {
#ifdef WRONG
    sem_init(&object, 0, 0); // RACE:object:B
#endif
}

int main(void) {
#ifndef WRONG
    sem_init(&object, 0, 0);
#endif
    RUN(user, owner);
    return 0;
}
