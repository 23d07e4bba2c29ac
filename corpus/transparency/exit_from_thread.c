/* exit called by a thread while main and another thread are blocked: atexit handlers and destructors run in that thread, status is its argument. */
#include "corpus.h"
#include <semaphore.h>

static sem_t never;

static void handler(void) { printf("handler\n"); }
__attribute__((destructor)) static void last(void) { printf("destructor\n"); }

static void blocked(void) { sem_wait(&never); }
static void leaves(void) {
    turn(1);
    exit(6);
}

int main(void) {
    sem_init(&never, 0, 0);
    atexit(handler);
    RUN(blocked, leaves);
    return 0;
}
