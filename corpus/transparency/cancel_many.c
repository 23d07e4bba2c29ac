/* Cancellation at each kind of blocking call: sleep, semaphore, condition, join, read from a pipe. Every thread must end cancelled, with its handler run. */
#include "corpus.h"
#include <semaphore.h>

enum { KINDS = 5 };
MUTEX(m);
COND(c);
static sem_t never, forever;
static int pipe_ends[2], handled[KINDS];
static pthread_t endless;

static void mark(void *slot) { *(int *)slot += 1; }
static void release(void *slot) {
    *(int *)slot += 1;
    UNLOCK(m);
}

static void *endless_thread(void *unused) {
    (void)unused;
    sem_wait(&forever);
    return NULL;
}

static void *sleeps(void *slot) {
    pthread_cleanup_push(mark, slot);
    sleep(100);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *waits_sem(void *slot) {
    pthread_cleanup_push(mark, slot);
    sem_wait(&never);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *waits_cond(void *slot) {
    LOCK(m);
    pthread_cleanup_push(release, slot);
    for (;;) pthread_cond_wait(&c, &m);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *joins(void *slot) {
    pthread_cleanup_push(mark, slot);
    pthread_join(endless, NULL);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *reads(void *slot) {
    char byte;
    pthread_cleanup_push(mark, slot);
    if (read(pipe_ends[0], &byte, 1) < 0) *(int *)slot += 100;
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    void *(*bodies[KINDS])(void *) = {sleeps, waits_sem, waits_cond, joins, reads};
    pthread_t threads[KINDS];
    sem_init(&never, 0, 0);
    sem_init(&forever, 0, 0);
    MUST(pipe(pipe_ends) == 0);
    endless = start_with(endless_thread, NULL);
    for (int i = 0; i < KINDS; i++) threads[i] = start_with(bodies[i], &handled[i]);
    turn(1);
    for (int i = 0; i < KINDS; i++) pthread_cancel(threads[i]);
    for (int i = 0; i < KINDS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        printf("%d %s\n", handled[i], result == PTHREAD_CANCELED ? "cancelled" : "ended");
    }
    sem_post(&forever);
    finish(endless);
    return 0;
}
