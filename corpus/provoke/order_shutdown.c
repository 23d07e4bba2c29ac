/* Order violation: main closes a log while the worker may still want to write to it. FIXED: main waits for the worker first. */
#include <assert.h>
#include <corpus.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int open_log = 1, lines;

static void worker(void) {
    pthread_mutex_lock(&m);
    assert(open_log);
    lines++;
    pthread_mutex_unlock(&m);
}

int main(void) {
    pthread_t thread = start(worker);
#ifdef FIXED
    finish(thread);
#else
    turn(2);
#endif
    pthread_mutex_lock(&m);
    open_log = 0;
    pthread_mutex_unlock(&m);
#ifndef FIXED
    finish(thread);
#endif
    printf("%d\n", lines);
    return 0;
}
