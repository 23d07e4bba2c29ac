/* Figure 2.2: condition variable with a guarded flag; second_task always comes after first_task. Clean. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int flag, log_;

static void first_task(void) { log_ = 1; }
static void second_task(void) { log_ = log_ * 10 + 2; }

static void waiter(void) {
    LOCK(m);
    while (flag == 0) pthread_cond_wait(&c, &m);
    UNLOCK(m);
    second_task();
}

static void signaler(void) {
    turn(1);
    first_task();
    LOCK(m);
    flag = 1;
    pthread_cond_signal(&c);
    UNLOCK(m);
}

int main(void) {
    RUN(waiter, signaler);
    printf("%d\n", log_);
    return 0;
}
