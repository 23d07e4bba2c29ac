/* A thread ends without giving its mutex back. Whoever asks later blocks for ever; in this run the other had asked before. */
#include "corpus.h"

MUTEX(m);
static int x;

static void careful(void) {
    LOCK(m); // BLOCKED:1
    x++;
    UNLOCK(m);
}

static void careless(void) {
    turn(1);
    LOCK(m);
    x++;
}

int main(void) {
    RUN(careful, careless);
    printf("%d\n", x);
    return 0;
}
