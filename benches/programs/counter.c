// Atomics: two threads count with relaxed, acquire-release and compare-exchange operations on shared words.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, CELLS = 64 };
static _Atomic long cells[CELLS * 8];
static _Atomic long largest;
static int operations;

static void *count(void *argument) {
    unsigned seed = (unsigned)(long)argument;
    for (int i = 0; i < operations; i++) {
        seed = seed * 1664525u + 1013904223u;
        _Atomic long *cell = &cells[(seed >> 8) % CELLS * 8];
        long now = atomic_fetch_add_explicit(cell, 1, memory_order_acq_rel) + 1;
        long seen = atomic_load_explicit(&largest, memory_order_relaxed);
        while (now > seen && !atomic_compare_exchange_weak(&largest, &seen, now)) {
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    operations = argc > 1 ? atoi(argv[1]) : 400000;
    pthread_t threads[THREADS];
    for (long t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, count, (void *)(t + 1));
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    long total = 0;
    for (int i = 0; i < CELLS; i++) total += atomic_load(&cells[i * 8]);
    printf("%ld\n", total);
    return total == (long)operations * THREADS ? 0 : 1;
}
