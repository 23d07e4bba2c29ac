/* _exit right after a race: no atexit handler runs, yet the report that was made must be delivered. */
#include "corpus.h"

static int x;

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
    _exit(5);
}
