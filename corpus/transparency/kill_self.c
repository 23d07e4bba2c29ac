/* kill -9 of itself: no handler, no destructor. The trace must be readable up to the last complete chunk and say that it was cut. */
#include "corpus.h"
#include <signal.h>

MUTEX(m);
static int counter;
static void worker(void) {
    for (int i = 0; i < 20000; i++) {
        LOCK(m);
        counter++;
        UNLOCK(m);
    }
}

int main(void) {
    RUN(worker, worker);
    printf("%d\n", counter);
    fflush(stdout);
    kill(getpid(), SIGKILL);
    return 0;
}
