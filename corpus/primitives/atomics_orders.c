/* Every memory order on every operation that admits it, and all fences, in one hand-over of plain data.
 * Clean: the plain data is passed by the release store and acquire load; the other operations only touch atomics. */
#include "corpus.h"
#include <stdatomic.h>

static atomic_int ready, noise;
static int data;

static void giver(void) {
    atomic_store_explicit(&noise, 1, memory_order_relaxed);
    atomic_store_explicit(&noise, 2, memory_order_seq_cst);
    atomic_fetch_add_explicit(&noise, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&noise, 1, memory_order_acquire);
    atomic_fetch_add_explicit(&noise, 1, memory_order_release);
    atomic_fetch_add_explicit(&noise, 1, memory_order_acq_rel);
    atomic_fetch_add_explicit(&noise, 1, memory_order_seq_cst);
    atomic_thread_fence(memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    atomic_signal_fence(memory_order_seq_cst);
    data = 1;
    atomic_store_explicit(&ready, 1, memory_order_release);
}

static void taker(void) {
    while (!atomic_load_explicit(&ready, memory_order_acquire)) sched_yield();
    data++;
    use(atomic_load_explicit(&noise, memory_order_relaxed));
    use(atomic_load_explicit(&noise, memory_order_consume));
    use(atomic_load_explicit(&noise, memory_order_seq_cst));
    atomic_thread_fence(memory_order_acquire);
    atomic_thread_fence(memory_order_acq_rel);
    int expected = 99;
    atomic_compare_exchange_strong_explicit(&noise, &expected, 0, memory_order_acq_rel, memory_order_relaxed);
    expected = 99;
    atomic_compare_exchange_weak_explicit(&noise, &expected, 0, memory_order_release, memory_order_acquire);
}

int main(void) {
    RUN(giver, taker);
    printf("%d %d\n", data, atomic_load(&noise));
    return 0;
}
