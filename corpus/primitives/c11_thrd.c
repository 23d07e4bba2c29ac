/* C11 threads: thrd_create, thrd_join with a result, thrd_detach, thrd_exit, thrd_yield, thrd_sleep, thrd_current. Clean: ordered by join and semaphore. */
#include "corpus.h"
#include <semaphore.h>
#include <threads.h>

static sem_t done;
static int shared, detached;

static int adds(void *argument) {
    shared += *(int *)argument;
    thrd_yield();
    return shared;
}

static int leaves(void *unused) {
    (void)unused;
    struct timespec ms = {0, 1000000};
    thrd_sleep(&ms, NULL);
    detached = 3;
    sem_post(&done);
    thrd_exit(0);
}

int main(void) {
    int value = 4, result = 0;
    thrd_t thread;
    sem_init(&done, 0, 0);
    shared = 1;
    MUST(thrd_create(&thread, adds, &value) == thrd_success);
    MUST(!thrd_equal(thread, thrd_current()));
    thrd_join(thread, &result);
    MUST(thrd_create(&thread, leaves, NULL) == thrd_success);
    thrd_detach(thread);
    sem_wait(&done);
    printf("%d %d\n", result, detached);
    return 0;
}
