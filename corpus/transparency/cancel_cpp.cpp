/* Cancellation of a C++ thread in a blocking call: destructors of its frames run, catch (...) sees the unwinding and passes it on. */
#include "corpus.h"
#include <semaphore.h>

static sem_t entered, never;
static int destroyed, seen;

struct Frame {
    ~Frame() { destroyed++; }
};

static void *worker(void *) {
    Frame outer;
    try {
        Frame inner;
        sem_post(&entered);
        sem_wait(&never);
    } catch (...) {
        seen++;
        throw;
    }
    return nullptr;
}

int main() {
    sem_init(&entered, 0, 0);
    sem_init(&never, 0, 0);
    pthread_t thread = start_with(worker, nullptr);
    sem_wait(&entered);
    turn(1);
    pthread_cancel(thread);
    void *result;
    pthread_join(thread, &result);
    printf("%d %d %d\n", destroyed, seen, result == PTHREAD_CANCELED);
}
