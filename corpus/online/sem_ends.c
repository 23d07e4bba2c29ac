/* An object is destroyed by a thread that nothing orders behind its last use. Correct: the user is joined first. */
#include "corpus.h"
#include <semaphore.h>

static sem_t object;

static void user(void) {
    sem_post(&object); // RACE:object:A
}

static void owner(void) {
    turn(1);
#ifdef WRONG
    sem_destroy(&object); // RACE:object:B
#endif
}

int main(void) {
    sem_init(&object, 0, 0);
    RUN(user, owner);
#ifndef WRONG
    sem_destroy(&object);
#endif
    return 0;
}
