/* Atomicity violation (write, read, write): a list is for a moment without its new length. FIXED: both in one critical section. */
#include <assert.h>
#include <corpus.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int state;

static void writer(void) {
    pthread_mutex_lock(&m);
    state = 1;
#ifndef FIXED
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
#endif
    state = 2;
    pthread_mutex_unlock(&m);
}

static void reader(void) {
    turn(2);
    pthread_mutex_lock(&m);
    int seen = state;
    pthread_mutex_unlock(&m);
    assert(seen != 1);
}

int main(void) {
    RUN(writer, reader);
    puts("1");
    return 0;
}
