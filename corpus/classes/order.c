/* Order violation (definition 4): the worker uses what main prepares after it has created the worker. Every access is
 * under a mutex: no race, only the wrong order. With an argument the worker is late and all is well: such runs are good
 * ones to learn from. */
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
    pthread_create(&one, NULL, worker, NULL);
    turn(1);
    pthread_mutex_lock(&m);
    table = 1; // ORDER:init
    pthread_mutex_unlock(&m);
    pthread_join(one, NULL);
    puts("1");
    return 0;
}
