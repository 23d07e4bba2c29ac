/* A worker that joins itself: what collects finished workers is called by one of them. The C library refuses such a join where
 * it notices; without that the worker waits for its own end. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_t workers[2];
static int collected;

static void collect(int which) {
    if (pthread_join(workers[which], NULL) == 0) collected++; // DEADLOCK:1
}

static void *worker(void *last) {
    pthread_mutex_lock(&m);
    int is_last = last != NULL;
    pthread_mutex_unlock(&m);
    if (is_last) collect(1);
    return NULL;
}

int main(void) {
    pthread_mutex_lock(&m);
    pthread_create(&workers[0], NULL, worker, NULL);
    pthread_create(&workers[1], NULL, worker, &m);
    pthread_mutex_unlock(&m);
    for (int i = 0; i < 2; i++) pthread_join(workers[i], NULL);
    printf("%d\n", collected);
    return 0;
}
