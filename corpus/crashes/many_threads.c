/* A program with 300 threads, which wait for a mutex, crashes: every one of them is in the report. */
#include "corpus.h"

MUTEX(m);
static int *volatile nowhere;

static void *worker(void *argument) {
    LOCK(m);
    UNLOCK(m);
    return argument;
}

int main(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    LOCK(m);
    for (int i = 0; i < 300; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, &attributes, worker, NULL) == 0);
    }
    turn(5);
    *nowhere = 1; // CRASH
    return 0;
}
