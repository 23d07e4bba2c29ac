/* Use case 2, a race detector of one's own for the globals x and y: the aspects name their loads and stores, the property looks for two conflicting ones in a row.
 * y is protected, x is not; the mutex hides it in this order. -DCORRECT protects x as well. */
#include "corpus.h"

MUTEX(m);
int x, y;

static void first(void) {
#ifdef CORRECT
    LOCK(m);
    x++;
    UNLOCK(m);
#else
    x++; // RACE:x:A
#endif
    LOCK(m);
    y++;
    UNLOCK(m);
}

static void second(void) {
    turn(1);
    LOCK(m);
    y++;
    UNLOCK(m);
#ifdef CORRECT
    LOCK(m);
    x++;
    UNLOCK(m);
#else
    x++; // RACE:x:B
#endif
}

int main(void) {
    RUN(first, second);
    printf("%d %d\n", x, y);
    return 0;
}
