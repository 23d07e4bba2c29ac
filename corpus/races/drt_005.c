/* 5: condition variable, the waker is there first and its signal is lost; the flag under the mutex still orders the two writes. Clean. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int flag, x;

static void waker(void) {
    x = 1;
    LOCK(m);
    flag = 1;
    pthread_cond_signal(&c);
    UNLOCK(m);
}

static void waiter(void) {
    turn(1);
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
