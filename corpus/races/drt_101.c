/* 101: two signals and two waits one after the other; the write lies between the signals and is ordered by the second. Clean. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int step, x;

static void reach(int n) {
    LOCK(m);
    step = n;
    pthread_cond_signal(&c);
    UNLOCK(m);
}

static void await(int n) {
    LOCK(m);
    while (step < n) pthread_cond_wait(&c, &m);
    UNLOCK(m);
}

static void signaller(void) {
    turn(1);
    reach(1);
    x = 1;
    turn(1);
    reach(2);
}

static void waiter(void) {
    await(1);
    await(2);
    x = 2;
}

int main(void) {
    RUN(signaller, waiter);
    printf("%d\n", x);
    return 0;
}
