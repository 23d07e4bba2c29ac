/* 512 threads alive at the same time, which a barrier proves. Clean: each writes its own cell, the barrier and the joins order the rest. */
#include "corpus.h"

enum { THREADS = 512 };
static pthread_barrier_t barrier;
static int cells[THREADS], seen[THREADS];

static void *body(void *argument) {
    long me = (long)argument;
    cells[me] = 1;
    pthread_barrier_wait(&barrier);
    seen[me] = cells[(me + 1) % THREADS];
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++) MUST(pthread_create(&threads[i], &attributes, body, (void *)i) == 0);
    int sum = 0;
    for (int i = 0; i < THREADS; i++) {
        finish(threads[i]);
    }
    for (int i = 0; i < THREADS; i++) sum += cells[i] + seen[i];
    printf("%d\n", sum);
    return 0;
}
