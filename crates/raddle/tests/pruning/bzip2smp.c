/* The shape of bzip2smp: one thread hands out blocks, the others compress and count them, each step under the lock that it needs. No race. */
#include <pthread.h>
#include <stddef.h>
#ifndef THREADS
#define THREADS 2
#endif
static int blocks, done, bytes;
static pthread_mutex_t in = PTHREAD_MUTEX_INITIALIZER, out = PTHREAD_MUTEX_INITIALIZER;
static void *compress(void *unused) {
    int mine;
    pthread_mutex_lock(&in);
    mine = blocks++;
    pthread_mutex_unlock(&in);
    pthread_mutex_lock(&out);
    if (mine == 0) bytes += 10;
    done++;
    pthread_mutex_unlock(&out);
    return unused;
}
int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, compress, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
