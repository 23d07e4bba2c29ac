/* Dekker's mutual exclusion with fences instead of seq_cst accesses. Weakened: leaving the critical section has no release fence, so the next one to enter may be inside without
 * being ordered after. With -DCORRECT the fence is there. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

#define rlx memory_order_relaxed

static atomic_int want[2], turn_;
static int shared;

static void enter(int me) {
    int other = 1 - me;
    atomic_store_explicit(&want[me], 1, rlx);
    atomic_thread_fence(memory_order_seq_cst);
    while (atomic_load_explicit(&want[other], rlx)) {
        if (atomic_load_explicit(&turn_, rlx) != me) {
            atomic_store_explicit(&want[me], 0, rlx);
            while (atomic_load_explicit(&turn_, rlx) != me) sched_yield();
            atomic_store_explicit(&want[me], 1, rlx);
            atomic_thread_fence(memory_order_seq_cst);
        } else {
            sched_yield();
        }
    }
    atomic_thread_fence(memory_order_acquire);
}

static void leave(int me) {
    atomic_store_explicit(&turn_, 1 - me, rlx);
#ifdef CORRECT
    atomic_thread_fence(memory_order_release);
#endif
    atomic_store_explicit(&want[me], 0, rlx);
}

static void visit(int me) {
    enter(me);
    shared++; // RACE:shared:A
    leave(me);
}

static void t0(void) { visit(0); }
static void t1(void) { visit(1); }

int main(void) {
    RUN(t0, t1);
    printf("%d\n", shared);
    return 0;
}
