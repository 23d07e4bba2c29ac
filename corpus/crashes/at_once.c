/* Eight threads crash at the same time: the report is that of one of them. */
#include "corpus.h"

static int *volatile nowhere;
static pthread_barrier_t together;

static void worker(void) {
    pthread_barrier_wait(&together);
    *nowhere = 1; // CRASH
}

int main(void) {
    pthread_barrier_init(&together, NULL, 8);
    RUN(worker, worker, worker, worker, worker, worker, worker, worker);
    return 0;
}
