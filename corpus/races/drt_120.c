/* 120: one thread writes and then reads, the other reads. The write races; the first thread's own read, though later, does not. */
#include "corpus.h"

static volatile int x;

static void first(void) {
    x = 1; // RACE:x:A
    use(x);
}

static void second(void) {
    turn(1);
    use(x); // RACE:x:B
}

int main(void) {
    RUN(first, second);
    printf("%d\n", x);
    return 0;
}
