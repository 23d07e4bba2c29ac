/* 68: all writes hold the mutex, a reader for statistics does not. */
#include "corpus.h"

MUTEX(m);
static int x;

static void writer(void) {
    for (int i = 0; i < 20; i++) {
        LOCK(m);
        x++; // RACE:x:A
        UNLOCK(m);
    }
}

static void reader(void) {
    turn(1);
    use(x); // RACE:x:B
}

int main(void) {
    RUN(writer, writer, reader);
    printf("%d\n", x);
    return 0;
}
