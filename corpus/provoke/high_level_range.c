/* High-level data race: the bounds of a range are moved one after the other; in between the range is empty. FIXED: together. */
#include <assert.h>
#include <corpus.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int low = 0, high = 10;

static void writer(void) {
    pthread_mutex_lock(&m);
    low = 20;
#ifndef FIXED
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
#endif
    high = 30;
    pthread_mutex_unlock(&m);
}

static void reader(void) {
    turn(2);
    pthread_mutex_lock(&m);
    int width = high - low;
    pthread_mutex_unlock(&m);
    assert(width == 10);
}

int main(void) {
    RUN(writer, reader);
    puts("1");
    return 0;
}
