/* Causally-precedes, figure 6: nested mutexes. The access to x comes before the outer section of one thread and after the inner section of the other, still inside its outer one. */
#include "corpus.h"

MUTEX(outer);
MUTEX(inner);
MUTEX(own);
static int x, y;

static void t1(void) {
    x = 1; // RACE:x:A
    LOCK(outer);
    LOCK(inner);
    y++;
    UNLOCK(inner);
    UNLOCK(outer);
}

static void t2(void) {
    turn(1);
    LOCK(own);
    LOCK(inner);
    y++;
    UNLOCK(inner);
    x = 2; // RACE:x:B
    UNLOCK(own);
}

int main(void) {
    RUN(t1, t2);
    printf("%d %d\n", x, y);
    return 0;
}
