/* A thread ends and never gives its mutex back: nobody will get it any more. Correct: it gives it back. */
#include "corpus.h"

MUTEX(lock);

static void careless(void) {
    LOCK(lock); // MISUSE:held
#ifndef WRONG
    UNLOCK(lock);
#endif
}

int main(void) {
    RUN(careless);
    return 0;
}
