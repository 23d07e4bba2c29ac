/* 50: the first writes are ordered by a condition variable; afterwards the waiter writes without and the waker with the mutex. Those two race. */
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
    turn(1);
    LOCK(m);
    x = 3; // RACE:x:B
    UNLOCK(m);
}

static void waiter(void) {
    LOCK(m);
    while (!flag) pthread_cond_wait(&c, &m);
    UNLOCK(m);
    x = 2; // RACE:x:A
}

int main(void) {
    RUN(waiter, waker);
    printf("%d\n", x);
    return 0;
}
