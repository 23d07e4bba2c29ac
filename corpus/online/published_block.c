/* A block is published by a relaxed store; its fields are atomic and are never written before. Wrong all the same: the allocation does not happen before
   the first read. Correct: the store releases and the load acquires. */
#include "corpus.h"
#include <stdatomic.h>
#include <stdlib.h>
static _Atomic(atomic_int *) published;
#ifdef WRONG
enum { STORE = memory_order_relaxed, LOAD = memory_order_relaxed };
#else
enum { STORE = memory_order_release, LOAD = memory_order_acquire };
#endif

static void publisher(void) {
    atomic_int *block = calloc(4, sizeof *block); // RACE:block:A
    atomic_store_explicit(&published, block, STORE);
    turn(2);
}

static void reader(void) {
    turn(1);
    atomic_int *block = atomic_load_explicit(&published, LOAD);
    while (!block) block = atomic_load_explicit(&published, LOAD);
    use(atomic_load_explicit(block, memory_order_relaxed)); // RACE:block:B
}

int main(void) {
    RUN(publisher, reader);
    return 0;
}
