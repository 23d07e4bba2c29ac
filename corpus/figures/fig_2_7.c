/* Figure 2.7: the smallest data race, two increments of x. Worker comes a turn later and the sum is right by luck. */
#include "corpus.h"

static int x;

static void worker(void) {
    turn(1);
    x = x + 1; // RACE:x:B
}

int main(void) {
    pthread_t thread = start(worker);
    x = x + 2; // RACE:x:A
    finish(thread);
    printf("%d\n", x);
    return 0;
}
