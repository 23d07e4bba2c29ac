/* A timed wait that is signalled long before its deadline: a successful wait, not a failed one. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int flag, timeouts;

static void waiter(void) {
    struct timespec late = deadline(CLOCK_REALTIME, 5000);
    LOCK(m);
    while (!flag) timeouts += pthread_cond_timedwait(&c, &m, &late) != 0;
    UNLOCK(m);
}

static void signaller(void) {
    turn(1);
    LOCK(m);
    flag = 1;
    pthread_cond_signal(&c);
    UNLOCK(m);
}

int main(void) {
    RUN(waiter, signaller);
    printf("%d timeouts\n", timeouts);
    return 0;
}
