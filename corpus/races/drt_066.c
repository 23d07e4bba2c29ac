/* 66: two signaller-waiter pairs share one condition variable and one mutex, each with its own flag. Clean: every waiter looks at its own flag.
 * Pairing waits with the nearest signal mixes the pairs up, which is where RaceQuest reports a race that is none. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int flag1, flag2, x1, x2;

static void signaller1(void) {
    turn(1);
    x1 = 1;
    LOCK(m);
    flag1 = 1;
    pthread_cond_broadcast(&c);
    UNLOCK(m);
}

static void signaller2(void) {
    turn(2);
    x2 = 1;
    LOCK(m);
    flag2 = 1;
    pthread_cond_broadcast(&c);
    UNLOCK(m);
}

static void waiter1(void) {
    LOCK(m);
    while (!flag1) pthread_cond_wait(&c, &m);
    UNLOCK(m);
    x1 = 2;
}

static void waiter2(void) {
    LOCK(m);
    while (!flag2) pthread_cond_wait(&c, &m);
    UNLOCK(m);
    x2 = 2;
}

int main(void) {
    RUN(signaller1, signaller2, waiter1, waiter2);
    printf("%d %d\n", x1, x2);
    return 0;
}
