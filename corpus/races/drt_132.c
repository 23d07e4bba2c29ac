/* 132: simple race, write against write, before any other synchronisation has happened in the process. */
#include "corpus.h"

static int x;

static void worker(void) {
    turn(1);
    x = 1; // RACE:x:B
}

int main(void) {
    pthread_t thread = start(worker);
    x = 2; // RACE:x:A
    finish(thread);
    printf("%d\n", x);
    return 0;
}
