/* pthread_cond_clockwait on the monotonic clock, once timing out and once signalled; also a condition whose attribute chose that clock. */
#include "corpus.h"

MUTEX(m);
COND(c);
static pthread_cond_t monotonic;
static int flag, first, second;

static void waiter(void) {
    LOCK(m);
    struct timespec t = deadline(CLOCK_MONOTONIC, 5);
    do first = pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &t);
    while (first == 0);
    t = deadline(CLOCK_MONOTONIC, 5000);
    while (!flag) second |= pthread_cond_timedwait(&monotonic, &m, &t);
    UNLOCK(m);
}

static void signaller(void) {
    turn(2);
    LOCK(m);
    flag = 1;
    pthread_cond_signal(&monotonic);
    UNLOCK(m);
}

int main(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&monotonic, &attributes);
    RUN(waiter, signaller);
    pthread_cond_destroy(&monotonic);
    printf("%s %s\n", first == ETIMEDOUT ? "timeout" : "?", second == 0 ? "signalled" : "?");
    return 0;
}
