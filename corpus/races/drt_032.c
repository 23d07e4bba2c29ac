/* 32: writer and reader hold the mutex; main writes without it, after it has joined both. Clean. */
#include "corpus.h"

MUTEX(m);
static int x;

static void writer(void) {
    LOCK(m);
    x = 1;
    UNLOCK(m);
}

static void reader(void) {
    turn(1);
    LOCK(m);
    use(x);
    UNLOCK(m);
}

int main(void) {
    RUN(reader, writer);
    x = 2;
    printf("%d\n", x);
    return 0;
}
