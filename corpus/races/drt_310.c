/* 310: three mutexes. First writer m3 and m1, second writer m2 and m1, reader only m2. The first writer and the reader have nothing in common; the second writer hides it. */
#include "corpus.h"

MUTEX(m1);
MUTEX(m2);
MUTEX(m3);
static int x;

static void writer1(void) {
    LOCK(m3);
    LOCK(m1);
    x = 1; // RACE:x:A
    UNLOCK(m1);
    UNLOCK(m3);
}

static void writer2(void) {
    turn(1);
    LOCK(m2);
    LOCK(m1);
    x = 2;
    UNLOCK(m1);
    UNLOCK(m2);
}

static void reader(void) {
    turn(2);
    LOCK(m2);
    use(x); // RACE:x:B
    UNLOCK(m2);
}

int main(void) {
    RUN(writer1, writer2, reader);
    printf("%d\n", x);
    return 0;
}
