/* Opposite orders, but the second mutex is only tried for, and the first given back on failure: hold and wait never happens. Clean. */
#include "corpus.h"

MUTEX(a);
MUTEX(b);
static int rounds;

static void both(pthread_mutex_t *first, pthread_mutex_t *second) {
    for (;;) {
        pthread_mutex_lock(first);
        if (pthread_mutex_trylock(second) == 0) break;
        pthread_mutex_unlock(first);
        sched_yield();
    }
    rounds++;
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}

static void t1(void) { both(&a, &b); }
static void t2(void) {
    turn(1);
    both(&b, &a);
}

int main(void) {
    RUN(t1, t2);
    printf("%d\n", rounds);
    return 0;
}
