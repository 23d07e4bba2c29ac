/* 125: the lock turned round: a read lock for writing one's own cell, the write lock for reading all cells. Clean: readers of the sum exclude all writers. */
#include "corpus.h"

enum { N = 3 };
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static int cell[N], sum;

static void *adder(void *argument) {
    long me = (long)argument;
    pthread_rwlock_rdlock(&l);
    cell[me]++;
    pthread_rwlock_unlock(&l);
    return NULL;
}

static void *aggregator(void *unused) {
    (void)unused;
    pthread_rwlock_wrlock(&l);
    sum = 0;
    for (int i = 0; i < N; i++) sum += cell[i];
    pthread_rwlock_unlock(&l);
    return NULL;
}

int main(void) {
    pthread_t threads[N + 1];
    for (long i = 0; i < N; i++) threads[i] = start_with(adder, (void *)i);
    turn(1);
    threads[N] = start_with(aggregator, NULL);
    for (int i = 0; i <= N; i++) finish(threads[i]);
    printf("%d\n", sum);
    return 0;
}
