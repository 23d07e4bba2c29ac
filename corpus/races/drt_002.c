/* 2: synchronisation by condition variable, the waiter is there first. Clean: the waker's write comes before the flag, the waiter's after it. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int flag, x;

static void waker(void) {
    turn(1);
    x = 1;
    LOCK(m);
    flag = 1;
    pthread_cond_signal(&c);
    UNLOCK(m);
}

static void waiter(void) {
    LOCK(m);
    while (!flag) pthread_cond_wait(&c, &m);
    UNLOCK(m);
    x = 2;
}

int main(void) {
    RUN(waiter, waker);
    printf("%d\n", x);
    return 0;
}
