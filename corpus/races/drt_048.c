/* 48: one write, then reads by several threads, none ordered. */
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
    RUN(writer, reader, reader);
    printf("%d\n", x);
    return 0;
}
