/* A thread that is neither joined nor detached: its resources leak. A thread-leak report is due where that check is on; nothing else is wrong. */
#include "corpus.h"
#include <semaphore.h>

static sem_t done;
static void forgotten(void) { sem_post(&done); }

int main(void) {
    sem_init(&done, 0, 0);
    start(forgotten);
    sem_wait(&done);
    turn(1);
    printf("done\n");
    return 0;
}
