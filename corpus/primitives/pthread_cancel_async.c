/* Asynchronous cancellation stops a loop that never calls anything, and cancellation can be put off.
 * The thread counts while cancellation is disabled, then allows it and spins; only cancellation ends it. */
#include "corpus.h"
#include <semaphore.h>

static sem_t ready;
static int counted;

static void *child(void *unused) {
    (void)unused;
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    for (int i = 0; i < 1000; i++) counted++;
    sem_post(&ready);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    for (;;) __asm__ volatile("");
    return NULL;
}

int main(void) {
    sem_init(&ready, 0, 0);
    pthread_t thread = start_with(child, NULL);
    sem_wait(&ready);
    usleep(20000); /* let it reach the loop: glibc forgets the result of a cancellation that strikes inside setcancelstate */
    void *result = NULL;
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("%d %s\n", counted, result == PTHREAD_CANCELED ? "cancelled" : "ended");
    return 0;
}
