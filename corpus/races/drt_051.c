/* 51: the waker is there first and its signal is lost; both write again afterwards, the waiter without the mutex. The same race as 50 by another path. */
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
    turn(2);
    LOCK(m);
    x = 3; // RACE:x:B
    UNLOCK(m);
}

static void waiter(void) {
    turn(1);
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
