/* An object is destroyed by a thread that nothing orders behind its last use. Correct: the user is joined first. */
#include "corpus.h"

static pthread_cond_t object;

static void user(void) {
    pthread_cond_signal(&object); // RACE:object:A
}

static void owner(void) {
    turn(1);
#ifdef WRONG
    pthread_cond_destroy(&object); // RACE:object:B
#endif
}

int main(void) {
    pthread_cond_init(&object, NULL);
    RUN(user, owner);
#ifndef WRONG
    pthread_cond_destroy(&object);
#endif
    return 0;
}
