/* Condition variable, signaller first: the signal finds nobody and is lost, the waiter sees the flag and never waits.
 * Clean all the same: the flag under the mutex carries the order, and in every other interleaving the loop waits for it. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int flag, data;

static void waiter(void) {
    turn(1);
    LOCK(m);
    while (!flag) pthread_cond_wait(&c, &m);
    UNLOCK(m);
    data += 1;
}

static void signaller(void) {
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
