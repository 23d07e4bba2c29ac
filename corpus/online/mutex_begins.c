/* An object is used by a thread that nothing orders behind its initialisation. Correct: it is initialised before the threads begin. */
#include "corpus.h"

static pthread_mutex_t object;

static void user(void) {
    turn(1);
    pthread_mutex_lock(&object), pthread_mutex_unlock(&object); // RACE:object:A
}

static void owner(void) {
#ifdef WRONG
    pthread_mutex_init(&object, NULL); // RACE:object:B
#endif
}

int main(void) {
#ifndef WRONG
    pthread_mutex_init(&object, NULL);
#endif
    RUN(user, owner);
    return 0;
}
