/* The MCS queue lock: each thread spins on a flag in its own node. Weakened: the previous owner opens the flag relaxed, so a thread that had to queue is not ordered after it.
 * With -DCORRECT it is a release. A thread that finds the lock free is ordered by the exchange on the tail and shows nothing. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

#ifdef CORRECT
#define HAND_OVER memory_order_release
#else
#define HAND_OVER memory_order_relaxed
#endif

typedef struct node {
    _Atomic(struct node *) next;
    atomic_int gate;
} node;

static _Atomic(node *) tail;
static int slot;

static void lock(node *me) {
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->gate, 1, memory_order_relaxed);
    node *before = atomic_exchange_explicit(&tail, me, memory_order_acq_rel);
    if (before) {
        atomic_store_explicit(&before->next, me, memory_order_release);
        while (atomic_load_explicit(&me->gate, memory_order_acquire)) sched_yield();
    }
}

static void unlock(node *me) {
    node *next = atomic_load_explicit(&me->next, memory_order_acquire);
    if (!next) {
        node *expected = me;
        if (atomic_compare_exchange_strong_explicit(&tail, &expected, NULL, memory_order_release, memory_order_relaxed)) return;
        while (!(next = atomic_load_explicit(&me->next, memory_order_acquire))) sched_yield();
    }
    atomic_store_explicit(&next->gate, 0, HAND_OVER);
}

static void worker(void) {
    node me;
    lock(&me);
    slot++; // RACE:slot:A
    unlock(&me);
    lock(&me);
    slot++; // RACE:slot:A
    unlock(&me);
}

int main(void) {
    RUN(worker, worker);
    printf("%d\n", slot);
    return 0;
}
