/* A null pointer written by a thread: the process dies by SIGSEGV as it would without a tool. */
#include "corpus.h"

MUTEX(m);
static int counter;
static int *volatile nowhere;

static void worker(void) {
    LOCK(m);
    counter++;
    UNLOCK(m);
}

static void faulty(void) { *nowhere = 1; }

int main(void) {
    RUN(worker, worker);
    printf("%d\n", counter);
    fflush(stdout);
    RUN(faulty);
    return 0;
}
