/* More threads than a barrier needs pass it in whatever groups the system likes. Clean: each thread looks only at what all have done before they were started. */
#include "corpus.h"

static pthread_barrier_t pairs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int tickets = 200, passed;

/* As many as come together in pairs: nobody is left alone. */
static int take(void) {
    LOCK(lock);
    int got = tickets > 0;
    tickets -= got;
    UNLOCK(lock);
    return got;
}

static void one(void) {
    while (take()) {
        pthread_barrier_wait(&pairs);
        LOCK(lock);
        passed++;
        UNLOCK(lock);
    }
}

int main(void) {
    pthread_barrier_init(&pairs, NULL, 2);
    RUN(one, one, one, one);
    pthread_barrier_destroy(&pairs);
    return passed != 200;
}
