/* Order violation (definition 4): the worker uses what main prepares after it has created the worker.
 * With an argument the worker is late and all is well: such runs are good ones to learn from. */
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
    pthread_create(&one, NULL, worker, NULL);
    turn(1);
    table = 1; // ORDER:init
    pthread_join(one, &seen);
    printf("%d\n", seen != NULL || !seen);
    return 0;
}
