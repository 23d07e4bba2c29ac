/* A thread dies while it holds a robust mutex; who takes the mutex next (EOWNERDEAD) comes after it. Wrong: the heir looks before it takes the mutex. */
#include "corpus.h"
#include <errno.h>
static pthread_mutex_t lock;
int value;

static void dies(void) {
    LOCK(lock);
    value = 1; // RACE:value:A
}

static void heir(void) {
    turn(2);
#ifdef WRONG
    value++; // RACE:value:B
#endif
    MUST(pthread_mutex_lock(&lock) == EOWNERDEAD);
    value++;
    pthread_mutex_consistent(&lock);
    UNLOCK(lock);
}

int main(void) {
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&lock, &robust);
    RUN(dies, heir);
    return 0;
}
