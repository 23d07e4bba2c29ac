/* A named semaphore opened twice under one name: both handles are the same semaphore.
 * Clean: the post through one handle orders the write before the read that follows the wait through the other. */
#include "corpus.h"
#include <fcntl.h>
#include <semaphore.h>

static sem_t *mine, *theirs;
static int data;

static void producer(void) {
    data = 6;
    sem_post(mine);
}

static void consumer(void) {
    sem_wait(theirs);
    data++;
}

int main(void) {
    char name[64];
    snprintf(name, sizeof name, "/raddle-corpus-%d", (int)getpid());
    mine = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    MUST(mine != SEM_FAILED);
    theirs = sem_open(name, 0);
    MUST(theirs != SEM_FAILED);
    sem_unlink(name);
    MUST(sem_trywait(theirs) == -1 && errno == EAGAIN);
    RUN(consumer, producer);
    sem_close(theirs);
    sem_close(mine);
    printf("%d\n", data);
    return 0;
}
