/* Unlocking a mutex that the thread does not hold: undefined for a normal mutex, and glibc lets it pass.
 * A misuse report is due; it is not a race and not a deadlock. */
#include "corpus.h"

MUTEX(m);

static void foreign(void) {
    UNLOCK(m); // MISUSE:unlock
}

int main(void) {
    LOCK(m);
    RUN(foreign);
    printf("done\n");
    return 0;
}
