/* 96: three threads, three mutexes, each thread holds two of them. No mutex is common to all, but any two threads share one. Clean. */
#include "corpus.h"

MUTEX(a);
MUTEX(b);
MUTEX(c);
static int x;

static void with(pthread_mutex_t *first, pthread_mutex_t *second) {
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    x++;
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}

static void t1(void) { with(&a, &b); }
static void t2(void) { with(&b, &c); }
static void t3(void) { with(&a, &c); }

int main(void) {
    RUN(t1, t2, t3);
    printf("%d\n", x);
    return 0;
}
