/* One broadcast wakes three waiters. Clean: all they touch afterwards is their own or read-only. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int flag, data, woken;

static void waiter(void) {
    LOCK(m);
    while (!flag) pthread_cond_wait(&c, &m);
    woken++;
    UNLOCK(m);
    use(data);
}

static void signaller(void) {
    turn(1);
    data = 7;
    LOCK(m);
    flag = 1;
    pthread_cond_broadcast(&c);
    UNLOCK(m);
}

int main(void) {
    RUN(waiter, waiter, waiter, signaller);
    printf("%d %d\n", woken, data);
    return 0;
}
