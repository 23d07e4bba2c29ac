/* High-level data race: both parts of a number are written, each in a critical section of its own; a reader sees half of the change. FIXED: in one. */
#include <assert.h>
#include <corpus.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static double re, im;

static void writer(void) {
    pthread_mutex_lock(&m);
    re = 1.0;
#ifndef FIXED
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
#endif
    im = 1.0;
    pthread_mutex_unlock(&m);
}

static void reader(void) {
    turn(2);
    pthread_mutex_lock(&m);
    double a = re, b = im;
    pthread_mutex_unlock(&m);
    assert(a == b);
}

int main(void) {
    RUN(writer, reader);
    puts("1");
    return 0;
}
