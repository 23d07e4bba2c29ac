/* Order violation (definition 4): the worker uses what main prepares before it creates the
 * worker. */
#include <corpus.h>
#include <pthread.h>
#include <stdio.h>

static int table;
static int late;

static void *worker(void *unused) {
    (void)unused;
    if (late) turn(2);
    return (void *)(long)table; // ORDER:use
}

int main(int argc, char **argv) {
    (void)argv;
    pthread_t one;
    void *seen;
    late = argc > 1;
    table = 1; // ORDER:init
    pthread_create(&one, NULL, worker, NULL);
    pthread_join(one, &seen);
    printf("%d\n", seen != NULL || !seen);
    return 0;
}
