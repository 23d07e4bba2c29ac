/* sched_yield, usleep, nanosleep, clock_nanosleep and sleep(0): they let others run and order nothing. Clean: nothing is shared. */
#include "corpus.h"
#include <sched.h>

static int rounds[2];

static void *worker(void *slot) {
    struct timespec ms = {0, 1000000};
    for (int i = 0; i < 3; i++) {
        sched_yield();
        usleep(100);
        nanosleep(&ms, NULL);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL);
        sleep(0);
        ++*(int *)slot;
    }
    return NULL;
}

int main(void) {
    pthread_t a = start_with(worker, &rounds[0]), b = start_with(worker, &rounds[1]);
    finish(a);
    finish(b);
    printf("%d %d\n", rounds[0], rounds[1]);
    return 0;
}
