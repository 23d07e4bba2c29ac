/* Figures 4.5 and 4.7: a waiting loop whose wait is never called, because the signal came first. The order signal - wait exists all the same. Clean. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int flag, data;

static void worker(void) {
    turn(1);
    LOCK(m);
    while (flag == 0) pthread_cond_wait(&c, &m);
    UNLOCK(m);
    data++;
}

int main(void) {
    pthread_t thread = start(worker);
    data = 1;
    LOCK(m);
    flag = 1;
    pthread_cond_signal(&c);
    UNLOCK(m);
    finish(thread);
    printf("%d\n", data);
    return 0;
}
