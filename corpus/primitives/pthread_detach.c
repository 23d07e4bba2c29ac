/* A detached thread, and one created detached: nobody joins them.
 * Clean: the semaphore orders their writes before main's reads. Their end may or may not be in the trace, as main does not wait for it. */
#include "corpus.h"
#include <semaphore.h>

static sem_t done;
static int first, second;

static void *detached_later(void *unused) {
    (void)unused;
    first = 1;
    sem_post(&done);
    return NULL;
}

static void *detached_at_birth(void *unused) {
    (void)unused;
    second = 2;
    sem_post(&done);
    return NULL;
}

int main(void) {
    sem_init(&done, 0, 0);
    pthread_detach(start_with(detached_later, NULL));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    pthread_create(&thread, &attributes, detached_at_birth, NULL);
    pthread_attr_destroy(&attributes);
    sem_wait(&done);
    sem_wait(&done);
    printf("%d\n", first + second);
    return 0;
}
