/* 148: three threads. The signaller's write is handed to the waiter, the third thread writes under the mutex and knows nothing of the hand-over. Its late arrival hides the race. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int flag, x;

static void signaller(void) {
    turn(1);
    x = 1; // RACE:x:A
    LOCK(m);
    flag = 1;
    pthread_cond_signal(&c);
    UNLOCK(m);
}

static void waiter(void) {
    LOCK(m);
    while (!flag) pthread_cond_wait(&c, &m);
    x = 2;
    UNLOCK(m);
}

static void racer(void) {
    turn(3);
    LOCK(m);
    x = 3; // RACE:x:B
    UNLOCK(m);
}

int main(void) {
    RUN(signaller, waiter, racer);
    printf("%d\n", x);
    return 0;
}
