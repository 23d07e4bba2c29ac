/* 133: the race of 132 after a long warm-up of correctly protected work by the same two threads. */
#include "corpus.h"

MUTEX(m);
static int x, work;

static void warm_up(void) {
    for (int i = 0; i < 200; i++) {
        LOCK(m);
        work++;
        UNLOCK(m);
    }
}

static void first(void) {
    warm_up();
    turn(1);
    x = 1; // RACE:x:A
}

static void second(void) {
    warm_up();
    turn(2);
    x = 2; // RACE:x:B
}

int main(void) {
    RUN(first, second);
    printf("%d %d\n", x, work);
    return 0;
}
