/* 77: the waiter uses a timed wait in its loop and times out several times before the flag is set. Clean: time-outs order nothing, the flag under the mutex does. */
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
    while (!flag) {
        struct timespec soon = deadline(CLOCK_REALTIME, 5);
        pthread_cond_timedwait(&c, &m, &soon);
    }
    UNLOCK(m);
    x++;
}

int main(void) {
    RUN(waiter, waker);
    printf("%d\n", x);
    return 0;
}
