/* Order violation (definition 4): the worker uses what main prepares before it creates the worker. */
#include <corpus.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int table;
static int late;

static void *worker(void *unused) {
    (void)unused;
    if (late) turn(3);
    pthread_mutex_lock(&m);
    int seen = table; // ORDER:use
    pthread_mutex_unlock(&m);
    use(seen);
    return NULL;
}

int main(int argc, char **argv) {
    (void)argv;
    pthread_t one;
    late = argc > 1;
    pthread_mutex_lock(&m);
    table = 1; // ORDER:init
    pthread_mutex_unlock(&m);
    pthread_create(&one, NULL, worker, NULL);
    pthread_join(one, NULL);
    puts("1");
    return 0;
}
