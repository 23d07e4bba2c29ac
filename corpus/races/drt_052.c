/* 52: a broadcast releases two waiters that then both write: ordered after the waker, not among themselves. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int flag, x;

static void waker(void) {
    turn(1);
    x = 1;
    LOCK(m);
    flag = 1;
    pthread_cond_broadcast(&c);
    UNLOCK(m);
}

static void await(void) {
    LOCK(m);
    while (!flag) pthread_cond_wait(&c, &m);
    UNLOCK(m);
}

static void waiter(void) {
    await();
    x = 2; // RACE:x:A
}

static void late_waiter(void) {
    await();
    turn(1);
    x = 3; // RACE:x:B
}

int main(void) {
    RUN(waiter, late_waiter, waker);
    printf("%d\n", x);
    return 0;
}
