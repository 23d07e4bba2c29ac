/* 9: simple race, the read comes first, the write later. */
#include "corpus.h"

static int x;

static void writer(void) {
    turn(1);
    x = 3; // RACE:x:B
}

static void reader(void) {
    use(x); // RACE:x:A
}

int main(void) {
    RUN(writer, reader);
    printf("%d\n", x);
    return 0;
}
