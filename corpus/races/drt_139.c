/* 139: a race hidden by reference counting: both threads drop their reference under the counter's mutex, one before and one after using x. In the observed order the counter orders
 * the uses; the last one to drop might have been the other. */
#include "corpus.h"

MUTEX(m);
static int references = 2, x;

static void drop(void) {
    LOCK(m);
    references--;
    UNLOCK(m);
}

static void first(void) {
    x = 1; // RACE:x:A
    drop();
}

static void second(void) {
    turn(1);
    drop();
    x = 2; // RACE:x:B
}

int main(void) {
    RUN(first, second);
    printf("%d %d\n", x, references);
    return 0;
}
