/* 10: simple race, the write comes first, the read later. Eraser's state machine misses this one. */
#include "corpus.h"

static int x;

static void writer(void) {
    x = 3; // RACE:x:A
}

static void reader(void) {
    turn(1);
    use(x); // RACE:x:B
}

int main(void) {
    RUN(writer, reader);
    printf("%d\n", x);
    return 0;
}
