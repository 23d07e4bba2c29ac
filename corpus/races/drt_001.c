/* 1: simple race, write against write. */
#include "corpus.h"

static int x;

static void worker(void) {
    x = 1; // RACE:x:A
}

static void parent(void) {
    turn(1);
    x = 2; // RACE:x:B
}

int main(void) {
    RUN(worker, parent);
    printf("%d\n", x);
    return 0;
}
