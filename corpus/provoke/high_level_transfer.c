/* High-level data race: money is on neither account for a moment. FIXED: taken and given in one critical section. */
#include <assert.h>
#include <corpus.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int from = 100, to = 100;

static void writer(void) {
    pthread_mutex_lock(&m);
    from -= 30;
#ifndef FIXED
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
#endif
    to += 30;
    pthread_mutex_unlock(&m);
}

static void reader(void) {
    turn(2);
    pthread_mutex_lock(&m);
    int sum = from + to;
    pthread_mutex_unlock(&m);
    assert(sum == 200);
}

int main(void) {
    RUN(writer, reader);
    puts("1");
    return 0;
}
