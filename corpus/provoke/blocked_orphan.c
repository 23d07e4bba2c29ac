/* Blocked thread: a thread that finds the work done returns without giving its lock back; main waits for ever. In the recorded run
 * it finds none done. FIXED: it gives the lock back. */
#include <corpus.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void first(void) {
    pthread_mutex_lock(&m);
    if (done) {
#ifdef FIXED
        pthread_mutex_unlock(&m);
#endif
        return;
    }
    pthread_mutex_unlock(&m);
}

static void second(void) {
    turn(2);
    pthread_mutex_lock(&m);
    done = 1;
    pthread_mutex_unlock(&m);
}

int main(void) {
    RUN(first, second);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    puts("1");
    return 0;
}
