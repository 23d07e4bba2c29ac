/* Use case 1, deadlock: two account locks taken in the order of the transfer. The property repeats the built-in deadlock check as a user would write it; no aspect is needed.
 * -DCORRECT takes the locks in a fixed order. */
#include "corpus.h"

MUTEX(savings);
MUTEX(current);
static int moved;

static void to_current(void) {
    LOCK(savings);
    LOCK(current); // DEADLOCK:1
    moved += 10;
    UNLOCK(current);
    UNLOCK(savings);
}

static void to_savings(void) {
    turn(1);
#ifdef CORRECT
    LOCK(savings);
    LOCK(current);
    moved -= 3;
    UNLOCK(current);
    UNLOCK(savings);
#else
    LOCK(current);
    LOCK(savings); // DEADLOCK:2
    moved -= 3;
    UNLOCK(savings);
    UNLOCK(current);
#endif
}

int main(void) {
    RUN(to_current, to_savings);
    printf("%d\n", moved);
    return 0;
}
