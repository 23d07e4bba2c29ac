/* Figure 2.8: every access is protected, yet main reads and writes x in two critical sections and can overwrite worker's increment.
 * No race and no deadlock: an atomicity violation, which only someone who knows that main's steps belong together can call an error. */
#include "corpus.h"

MUTEX(m);
static int x;

static void worker(void) {
    turn(1);
    LOCK(m);
    x++; // ATOMICITY:2
    UNLOCK(m);
}

int main(void) {
    pthread_t thread = start(worker);
    LOCK(m);
    int temp = x; // ATOMICITY:1
    UNLOCK(m);
    temp++;
    LOCK(m);
    x = temp; // ATOMICITY:3
    UNLOCK(m);
    finish(thread);
    printf("%d\n", x);
    return 0;
}
