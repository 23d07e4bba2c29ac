/* A thread writes through a null pointer two calls deep while main waits to join it: the process dies by SIGSEGV, and the report has the stacks of both. */
#include "corpus.h"

static int *volatile nowhere;

__attribute__((noinline)) static void inner(void) { *nowhere = 1; } // CRASH

__attribute__((noinline)) static void outer(void) {
    inner();
    use(0);
}

static void *worker(void *argument) {
    outer();
    return argument;
}

int main(void) {
    pthread_t thread = start_with(worker, NULL);
    pthread_join(thread, NULL);
    return 0;
}
