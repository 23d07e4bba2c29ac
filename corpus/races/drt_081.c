/* 81: the same memory carries object after object, each handed to a worker and back by two semaphores. Clean: reuse of memory is not sharing. */
#include "corpus.h"
#include <semaphore.h>

static sem_t full, empty_;
static int *object;
static int sum;

static void worker(void) {
    for (int i = 0; i < 5; i++) {
        sem_wait(&full);
        sum += *object;
        free(object);
        sem_post(&empty_);
    }
}

int main(void) {
    sem_init(&full, 0, 0);
    sem_init(&empty_, 0, 1);
    pthread_t thread = start(worker);
    for (int i = 1; i <= 5; i++) {
        sem_wait(&empty_);
        object = malloc(sizeof *object);
        *object = i;
        sem_post(&full);
    }
    finish(thread);
    printf("%d\n", sum);
    return 0;
}
