/* A barrier of three, used for four rounds: in each round every thread reads what its neighbour wrote in the round before.
 * Clean: the barrier separates the rounds. Exactly one thread of each round gets the serial value. */
#include "corpus.h"

enum { THREADS = 3, ROUNDS = 4 };
static pthread_barrier_t barrier;
static int cell[2][THREADS];
static int serial[THREADS];

static void *worker(void *argument) {
    int me = (int)(long)argument;
    for (int round = 0; round < ROUNDS; round++) {
        int from = round % 2, to = 1 - from;
        cell[to][me] = cell[from][(me + 1) % THREADS] + 1;
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) serial[me]++;
    }
    return NULL;
}

int main(void) {
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) threads[i] = start_with(worker, (void *)i);
    for (int i = 0; i < THREADS; i++) finish(threads[i]);
    pthread_barrier_destroy(&barrier);
    printf("%d %d\n", cell[0][0] + cell[0][1] + cell[0][2], serial[0] + serial[1] + serial[2]);
    return 0;
}
