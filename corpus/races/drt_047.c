/* 47: the writes are outside two empty critical sections that happen-before takes for an order. A true race that a pure happens-before detector cannot see in this order. */
#include "corpus.h"

MUTEX(m);
static int x;

static void first(void) {
    x = 1; // RACE:x:A
    LOCK(m);
    UNLOCK(m);
}

static void second(void) {
    turn(1);
    LOCK(m);
    UNLOCK(m);
    x++; // RACE:x:B
}

int main(void) {
    RUN(first, second);
    printf("%d\n", x);
    return 0;
}
