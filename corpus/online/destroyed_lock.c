/* A mutex is locked after it was destroyed. Correct: it is initialised again in between. */
#include "corpus.h"

static pthread_mutex_t lock;

int main(void) {
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_destroy(&lock);
#ifndef WRONG
    pthread_mutex_init(&lock, NULL);
#endif
    pthread_mutex_lock(&lock); // MISUSE:lock
#ifndef WRONG
    pthread_mutex_unlock(&lock);
#endif
    return 0;
}
