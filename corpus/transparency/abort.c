/* abort while a thread runs: the trace up to here is readable, the reports made so far are delivered, the signal is kept. */
#include "corpus.h"

MUTEX(m);
static int counter;
static void worker(void) {
    LOCK(m);
    counter++;
    UNLOCK(m);
}

int main(void) {
    RUN(worker, worker);
    start(worker);
    printf("%d\n", 2);
    fflush(stdout);
    abort();
}
