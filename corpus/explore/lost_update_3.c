/* Lost updates, three in each of two threads: every result from 2 to 6 is possible. 2 needs a thread that sleeps through almost all of the other's work, twice. */
#include "corpus.h"
#include <stdatomic.h>

static atomic_int x;

static void increments(void) {
    for (int i = 0; i < 3; i++) {
        int seen = atomic_load(&x);
        atomic_store(&x, seen + 1);
    }
}

static void late(void) {
    turn(1);
    increments();
}

int main(void) {
    RUN(increments, late);
    printf("%d\n", atomic_load(&x));
    return 0;
}
