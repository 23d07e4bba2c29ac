/* main aborts while one thread waits for a mutex that main holds and another one for a condition that nobody signals: the report says what each waits for. */
#include "corpus.h"

MUTEX(m);
MUTEX(other);
MUTEX(spare);
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void locker(void) {
    LOCK(m);
    UNLOCK(m);
}

static void waiter(void) {
    LOCK(other);
    pthread_cond_wait(&never, &other);
    UNLOCK(other);
}

int main(void) {
    LOCK(m);
    start(locker);
    start(waiter);
    turn(2);
    /* Where operations are scheduled, these are the others' chances. */
    for (int i = 0; i < 4; i++) {
        LOCK(spare);
        UNLOCK(spare);
    }
    abort(); // CRASH
}
