/* tc13: three mutexes taken in both orders, but always by the only thread. A lock-order graph has a cycle; no deadlock is possible. */
#include "corpus.h"

MUTEX(a);
MUTEX(b);
MUTEX(c);

int main(void) {
    LOCK(a);
    LOCK(b);
    LOCK(c);
    UNLOCK(c);
    UNLOCK(b);
    UNLOCK(a);
    LOCK(c);
    LOCK(b);
    LOCK(a);
    UNLOCK(a);
    UNLOCK(b);
    UNLOCK(c);
    printf("done\n");
    return 0;
}
