/* Opposite orders in two threads, the second of which is created only after the first was joined: they never run together. */
#include "corpus.h"

MUTEX(a);
MUTEX(b);

static void forwards(void) {
    LOCK(a);
    LOCK(b);
    UNLOCK(b);
    UNLOCK(a);
}

static void backwards(void) {
    LOCK(b);
    LOCK(a);
    UNLOCK(a);
    UNLOCK(b);
}

int main(void) {
    RUN(forwards);
    RUN(backwards);
    printf("done\n");
    return 0;
}
