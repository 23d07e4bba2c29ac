/* Livelock: a worker waits for a flag; a thread that comes late takes it down again, and nobody raises it any more. FIXED: it is never
 * taken down. */
#include <corpus.h>
#include <stdatomic.h>

static atomic_int ready = 1;

static void waiter(void) {
    while (!atomic_load(&ready)) { }
}

static void clearer(void) {
    turn(2);
#ifndef FIXED
    atomic_store(&ready, 0);
#endif
}

int main(void) {
    RUN(waiter, clearer);
    puts("1");
    return 0;
}
