/* Figure 1.1: a non-deterministic and racy program. Both threads update x without a lock; an update can be lost and the assertion fail.
 * Timed so that main comes first, which gives 3 2 3. The accesses are unordered, so happens-before sees the race in this order too. */
#include "corpus.h"
#include <assert.h>

static int x, y, z;

static void worker(void) {
    turn(1);
    x = x + 1; // RACE:x:C
    z = x;     // RACE:x:D
}

int main(void) {
    pthread_t thread = start(worker);
    x = x + 2; // RACE:x:A
    y = x;     // RACE:x:B
    finish(thread);
    assert(x == 3);
    printf("%d %d %d\n", x, y, z);
    return 0;
}
