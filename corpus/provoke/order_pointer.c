/* Order violation: the worker uses a pointer that main sets after it has created the worker. Both take the lock, so nothing races; in the
 * recorded run the worker is late. FIXED: the pointer is set before the worker is created. */
#include <corpus.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int value = 1;
static int *table;

static void worker(void) {
#ifndef FIXED
    turn(2);
#endif
    pthread_mutex_lock(&m);
    use(*table);
    pthread_mutex_unlock(&m);
}

static void prepare(void) {
    pthread_mutex_lock(&m);
    table = &value;
    pthread_mutex_unlock(&m);
}

int main(void) {
#ifdef FIXED
    prepare();
#endif
    pthread_t thread = start(worker);
#ifndef FIXED
    prepare();
#endif
    finish(thread);
    puts("1");
    return 0;
}
