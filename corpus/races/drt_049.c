/* 49: one write, then several reads by one thread at different places. */
#include "corpus.h"

static int x;

static void writer(void) {
    x = 3; // RACE:x:A
}

static void reader(void) {
    turn(1);
    use(x);     // RACE:x:B
    use(x + 1); // RACE:x:C
    use(x + 2); // RACE:x:D
}

int main(void) {
    RUN(writer, reader);
    printf("%d\n", x);
    return 0;
}
