/* sem-deadlock (figures 4.21 to 4.23): one semaphore is used for both directions. If main is quick, it takes back its own post; worker then waits for ever and main waits for worker. */
#include "corpus.h"
#include <semaphore.h>

static sem_t s;
static int log_;

static void worker(void) {
    sem_wait(&s); // DEADLOCK:1
    log_ = log_ * 10 + 2;
    sem_post(&s);
}

int main(void) {
    sem_init(&s, 0, 0);
    pthread_t thread = start(worker);
    log_ = 1;
    sem_post(&s);
    turn(2);
    sem_wait(&s);
    log_ = log_ * 10 + 3;
    pthread_join(thread, NULL); // DEADLOCK:2
    printf("%d\n", log_);
    return 0;
}
