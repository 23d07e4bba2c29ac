/* exit from main while two threads still run: one blocked for ever, one counting. atexit handlers run, status is main's. */
#include "corpus.h"
#include <semaphore.h>

static sem_t never;
static volatile int stop_counting;

static void blocked(void) { sem_wait(&never); }
static void busy(void) {
    while (!stop_counting) usleep(100);
}
static void handler(void) { printf("handler\n"); }

int main(void) {
    sem_init(&never, 0, 0);
    atexit(handler);
    start(blocked);
    start(busy);
    printf("leaving\n");
    exit(3);
}
