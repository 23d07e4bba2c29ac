/* Lost update at its smallest: two threads load, add one and store, atomically each but not together. The result is 2, or 1 when an update is lost. */
#include "corpus.h"
#include <stdatomic.h>

static atomic_int x;

static void increment(void) {
    int seen = atomic_load(&x);
    atomic_store(&x, seen + 1);
}

static void late(void) {
    turn(1);
    increment();
}

int main(void) {
    RUN(increment, late);
    printf("%d\n", atomic_load(&x));
    return 0;
}
