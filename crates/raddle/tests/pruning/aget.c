/* The shape of aget: each thread downloads a segment of its own and adds what it has got to a counter under a lock. No race. */
#include <pthread.h>
#include <stddef.h>
#ifndef THREADS
#define THREADS 3
#endif
static int written, running;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *get(void *unused) {
    pthread_mutex_lock(&lock);
    running++;
    pthread_mutex_unlock(&lock);
    for (int part = 0; part < 2; part++) {
        pthread_mutex_lock(&lock);
        written += 512;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, get, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return written != THREADS * 1024;
}
