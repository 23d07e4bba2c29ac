/* 37: write and later read, both under the mutex. Clean. */
#include "corpus.h"

MUTEX(m);
static int x;

static void writer(void) {
    LOCK(m);
    x = 3;
    UNLOCK(m);
}

static void reader(void) {
    turn(1);
    LOCK(m);
    use(x);
    UNLOCK(m);
}

int main(void) {
    RUN(writer, reader);
    printf("%d\n", x);
    return 0;
}
