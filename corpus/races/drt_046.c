/* 46: the first thread writes once without and once with the mutex, the second, later, with it. The mutex hides that the first write is unordered. */
#include "corpus.h"

MUTEX(m);
static int x;

static void first(void) {
    x++; // RACE:x:A
    LOCK(m);
    x++;
    UNLOCK(m);
}

static void second(void) {
    turn(1);
    LOCK(m);
    x++; // RACE:x:B
    UNLOCK(m);
}

int main(void) {
    RUN(first, second);
    printf("%d\n", x);
    return 0;
}
