/* 69: a start gate: many threads wait for a broadcast, work on their own cells, and count themselves out; main reads the cells when the count is full. Clean. */
#include "corpus.h"

enum { WORKERS = 3 };
MUTEX(m);
COND(c);
static int open_, done, cell[WORKERS], seed;

static void *worker(void *argument) {
    long me = (long)argument;
    LOCK(m);
    while (!open_) pthread_cond_wait(&c, &m);
    UNLOCK(m);
    cell[me] = seed + (int)me;
    LOCK(m);
    done++;
    pthread_cond_broadcast(&c);
    UNLOCK(m);
    return NULL;
}

int main(void) {
    pthread_t threads[WORKERS];
    for (long i = 0; i < WORKERS; i++) threads[i] = start_with(worker, (void *)i);
    seed = 10;
    LOCK(m);
    open_ = 1;
    pthread_cond_broadcast(&c);
    while (done < WORKERS) pthread_cond_wait(&c, &m);
    UNLOCK(m);
    int sum = 0;
    for (int i = 0; i < WORKERS; i++) sum += cell[i];
    for (int i = 0; i < WORKERS; i++) finish(threads[i]);
    printf("%d\n", sum);
    return 0;
}
