/* pthread_cond_timedwait that nobody signals times out holding the mutex again. Nothing is shared without the mutex. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int result;

static void waiter(void) {
    struct timespec soon = deadline(CLOCK_REALTIME, 5);
    LOCK(m);
    do result = pthread_cond_timedwait(&c, &m, &soon);
    while (result == 0);
    UNLOCK(m);
}

int main(void) {
    RUN(waiter);
    printf("%s\n", result == ETIMEDOUT ? "timeout" : "?");
    return 0;
}
