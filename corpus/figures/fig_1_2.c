/* Figure 1.2: the increments of figure 1.1 under a mutex. y and z still depend on the order, x does not. Clean. */
#include "corpus.h"
#include <assert.h>

MUTEX(m);
static int x, y, z;

static void worker(void) {
    turn(1);
    LOCK(m);
    x = x + 1;
    z = x;
    UNLOCK(m);
}

int main(void) {
    pthread_t thread = start(worker);
    LOCK(m);
    x = x + 2;
    y = x;
    UNLOCK(m);
    finish(thread);
    assert(x == 3);
    printf("%d %d %d\n", x, y, z);
    return 0;
}
