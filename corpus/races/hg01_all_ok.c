/* hg01_all_ok: two threads increment a variable under one mutex. Clean. */
#include "corpus.h"

MUTEX(m);
static int x;

static void child(void) {
    LOCK(m);
    x++;
    UNLOCK(m);
}

int main(void) {
    RUN(child, child);
    printf("%d\n", x);
    return 0;
}
