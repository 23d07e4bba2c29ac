/* A sequence lock with atomic relaxed data, as C11 demands it. Clean: the data are atomics, the counter and two fences detect torn reads. */
#include "corpus.h"
#include <stdatomic.h>

static atomic_uint sequence;
static atomic_int a, b;
static int torn;

static void writer(void) {
    for (int i = 1; i <= 20; i++) {
        unsigned s = atomic_load_explicit(&sequence, memory_order_relaxed);
        atomic_store_explicit(&sequence, s + 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(&a, i, memory_order_relaxed);
        atomic_store_explicit(&b, -i, memory_order_relaxed);
        atomic_store_explicit(&sequence, s + 2, memory_order_release);
    }
}

static void reader(void) {
    for (int i = 0; i < 20; i++) {
        unsigned before = atomic_load_explicit(&sequence, memory_order_acquire);
        int x = atomic_load_explicit(&a, memory_order_relaxed), y = atomic_load_explicit(&b, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        unsigned after = atomic_load_explicit(&sequence, memory_order_relaxed);
        if (before == after && before % 2 == 0 && x + y != 0) torn++;
    }
}

int main(void) {
    RUN(writer, reader);
    printf("%d\n", torn);
    return 0;
}
