/* 95: as 94 with the pairs in the other order: the second pair is done before the first signaller writes. */
#include "corpus.h"

MUTEX(m1);
MUTEX(m2);
COND(c1);
COND(c2);
static int flag1, flag2, x;

static void signaller1(void) {
    turn(3);
    x = 1; // RACE:x:A
    LOCK(m1);
    flag1 = 1;
    pthread_cond_signal(&c1);
    UNLOCK(m1);
}

static void signaller2(void) {
    turn(1);
    LOCK(m2);
    flag2 = 1;
    pthread_cond_signal(&c2);
    UNLOCK(m2);
}

static void waiter1(void) {
    LOCK(m1);
    while (!flag1) pthread_cond_wait(&c1, &m1);
    UNLOCK(m1);
}

static void waiter2(void) {
    LOCK(m2);
    while (!flag2) pthread_cond_wait(&c2, &m2);
    UNLOCK(m2);
    x = 2; // RACE:x:B
}

int main(void) {
    RUN(signaller1, signaller2, waiter1, waiter2);
    printf("%d\n", x);
    return 0;
}
