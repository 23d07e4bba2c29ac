/* Causally-precedes, figure 8: the second access is made by a thread that is created only after the critical section that seems to order it. */
#include "corpus.h"

MUTEX(l);
static int x, y;

static void t1(void) {
    x = 1; // RACE:x:A
    LOCK(l);
    y++;
    UNLOCK(l);
}

static void t3(void) {
    x = 2; // RACE:x:B
}

static void t2(void) {
    turn(1);
    LOCK(l);
    y++;
    UNLOCK(l);
    finish(start(t3));
}

int main(void) {
    RUN(t1, t2);
    printf("%d %d\n", x, y);
    return 0;
}
