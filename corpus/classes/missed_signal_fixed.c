/* Missed signal (definition 5): the waiter checks a flag, so it does not matter who comes first. */
#include <corpus.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready;

static void *waiter(void *unused) {
    (void)unused;
    turn(1);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 100000000;
    if (soon.tv_nsec >= 1000000000) { soon.tv_sec++; soon.tv_nsec -= 1000000000; }
    pthread_mutex_lock(&m);
    while (!ready) if (pthread_cond_timedwait(&c, &m, &soon)) break;
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_t one;
    pthread_create(&one, NULL, waiter, NULL);
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_signal(&c); // MISSED:signal
    pthread_mutex_unlock(&m);
    pthread_join(one, NULL);
    printf("%d\n", ready);
    return 0;
}
