/* An object is used by a thread that nothing orders behind its initialisation. Correct: it is initialised before the threads begin. */
#include "corpus.h"

static pthread_cond_t object;

static void user(void) {
    turn(1);
    pthread_cond_signal(&object); // RACE:object:A
}

static void owner(void) {
#ifdef WRONG
    pthread_cond_init(&object, NULL); // RACE:object:B
#endif
}

int main(void) {
#ifndef WRONG
    pthread_cond_init(&object, NULL);
#endif
    RUN(user, owner);
    return 0;
}
