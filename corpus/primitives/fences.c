/* Relaxed flag, ordered by a release fence before the store and an acquire fence after the load.
 * Clean by C11: fence synchronises with fence through the relaxed pair. Detectors that ignore fences cry wolf. */
#include "corpus.h"
#include <stdatomic.h>

static atomic_int flag;
static int data;

static void giver(void) {
    data = 1;
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&flag, 1, memory_order_relaxed);
}

static void taker(void) {
    while (!atomic_load_explicit(&flag, memory_order_relaxed)) sched_yield();
    atomic_thread_fence(memory_order_acquire);
    data++;
}

int main(void) {
    RUN(taker, giver);
    printf("%d\n", data);
    return 0;
}
