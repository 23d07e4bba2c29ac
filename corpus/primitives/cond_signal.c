/* Condition variable, waiter first: the signal comes two turns after the wait began. Clean: the flag is guarded and the wait loop re-checks it. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int flag, data;

static void waiter(void) {
    LOCK(m);
    while (!flag) pthread_cond_wait(&c, &m);
    UNLOCK(m);
    data += 1;
}

static void signaller(void) {
    turn(1);
    data = 41;
    LOCK(m);
    flag = 1;
    pthread_cond_signal(&c);
    UNLOCK(m);
}

int main(void) {
    RUN(waiter, signaller);
    printf("%d\n", data);
    return 0;
}
