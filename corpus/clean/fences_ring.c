/* A single-producer single-consumer ring whose indices are relaxed and ordered by fences alone. Clean: release fence before the index store, acquire fence after the load, both ways. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

enum { SIZE = 4, ITEMS = 20 };
static atomic_uint in, out;
static int ring[SIZE], sum;

static void producer(void) {
    for (unsigned i = 0; i < ITEMS; i++) {
        while (i - atomic_load_explicit(&out, memory_order_relaxed) == SIZE) sched_yield();
        atomic_thread_fence(memory_order_acquire);
        ring[i % SIZE] = (int)i;
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(&in, i + 1, memory_order_relaxed);
    }
}

static void consumer(void) {
    for (unsigned i = 0; i < ITEMS; i++) {
        while (atomic_load_explicit(&in, memory_order_relaxed) == i) sched_yield();
        atomic_thread_fence(memory_order_acquire);
        sum += ring[i % SIZE];
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(&out, i + 1, memory_order_relaxed);
    }
}

int main(void) {
    RUN(producer, consumer);
    printf("%d\n", sum);
    return 0;
}
