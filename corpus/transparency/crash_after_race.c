/* A race, then a crash: the report made before the crash must be delivered. */
#include "corpus.h"

static int x;
static int *volatile nowhere;

static void first(void) {
    x = 1; // RACE:x:A
}
static void second(void) {
    turn(1);
    x = 2; // RACE:x:B
}

int main(void) {
    RUN(first, second);
    printf("%d\n", x);
    fflush(stdout);
    *nowhere = x;
    return 0;
}
