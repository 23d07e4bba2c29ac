/* A mutex that is certainly waited for: the owner lets go only long after the other has asked. Clean: one mutex guards the counter. */
#include "corpus.h"

MUTEX(m);
static int order;

static void waits(void) {
    LOCK(m);
    order = order * 10 + 2;
    UNLOCK(m);
}

int main(void) {
    LOCK(m);
    pthread_t thread = start(waits);
    turn(1);
    order = 1;
    UNLOCK(m);
    finish(thread);
    printf("%d\n", order);
    return 0;
}
