/* 150: one of the racing threads has ended and been joined before the other makes its access. The join orders main, not the other thread. */
#include "corpus.h"

static int x;

static void first(void) {
    x++; // RACE:x:A
}

static void second(void) {
    turn(1);
    x++; // RACE:x:B
}

int main(void) {
    pthread_t a = start(first), b = start(second);
    finish(a);
    finish(b);
    printf("%d\n", x);
    return 0;
}
