/* The spinning barrier of the CDSchecker programs. The last thread to arrive resets the count and bumps the step; the others spin on the step.
 * Weakened: the spin loads the step relaxed, so a thread that had to wait is not ordered after the one that arrived last, and the data races.
 * Whether the race shows depends on who arrives last. With -DCORRECT the load acquires. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

#ifdef CORRECT
#define SPIN memory_order_acquire
#else
#define SPIN memory_order_relaxed
#endif

enum { THREADS = 2 };
static atomic_uint waiting, step;
static int data;

static void barrier_wait(void) {
    unsigned now = atomic_load_explicit(&step, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&waiting, 1, memory_order_acq_rel) == THREADS - 1) {
        atomic_store_explicit(&waiting, 0, memory_order_relaxed);
        atomic_store_explicit(&step, now + 1, memory_order_release);
    } else {
        while (atomic_load_explicit(&step, SPIN) == now) sched_yield();
    }
}

static void writer(void) {
    data = 1; // RACE:data:A
    barrier_wait();
}

static void reader(void) {
    barrier_wait();
    use(data); // RACE:data:B
}

int main(void) {
    RUN(writer, reader);
    printf("%d\n", data);
    return 0;
}
