/* A recursive mutex taken three deep by each thread; only the outermost pair changes hands. Clean: one mutex guards everything. */
#include "corpus.h"

static pthread_mutex_t m;
static int sum;

static void add(int depth) {
    LOCK(m);
    sum += depth;
    if (depth > 1) add(depth - 1);
    UNLOCK(m);
}

static void worker(void) { add(3); }

int main(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&m, &attributes);
    pthread_mutexattr_destroy(&attributes);
    RUN(worker, worker);
    MUST(pthread_mutex_trylock(&m) == 0);
    MUST(pthread_mutex_trylock(&m) == 0);
    UNLOCK(m);
    UNLOCK(m);
    pthread_mutex_destroy(&m);
    printf("%d\n", sum);
    return 0;
}
