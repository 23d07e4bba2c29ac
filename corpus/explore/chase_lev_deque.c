/* Chase-Lev work-stealing deque with C11 atomics: the owner pushes and takes at the bottom, thieves steal at the top.
 * Weakened: push publishes the new bottom without the release fence before it, so a thief that gets an element does not see what was put into it.
 * With -DCORRECT the fence is there. Every element is consumed once; the sum of the payloads proves it. */
#include "corpus.h"
#include <stdatomic.h>

#ifdef CORRECT
#define PUBLISH() atomic_thread_fence(memory_order_release)
#else
#define PUBLISH() ((void)0)
#endif

enum { SIZE = 8, ITEMS = 4 };
typedef struct {
    int payload;
} item;

static atomic_long top, bottom;
static _Atomic(item *) slots[SIZE];
static item items[ITEMS];
static atomic_int sum;

static void push(item *i) {
    long b = atomic_load_explicit(&bottom, memory_order_relaxed);
    atomic_store_explicit(&slots[b % SIZE], i, memory_order_relaxed);
    PUBLISH();
    atomic_store_explicit(&bottom, b + 1, memory_order_relaxed);
}

static item *take(void) {
    long b = atomic_load_explicit(&bottom, memory_order_relaxed) - 1;
    atomic_store_explicit(&bottom, b, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    long t = atomic_load_explicit(&top, memory_order_relaxed);
    if (t > b) {
        atomic_store_explicit(&bottom, b + 1, memory_order_relaxed);
        return NULL;
    }
    item *i = atomic_load_explicit(&slots[b % SIZE], memory_order_relaxed);
    if (t == b) {
        if (!atomic_compare_exchange_strong_explicit(&top, &t, t + 1, memory_order_seq_cst, memory_order_relaxed)) i = NULL;
        atomic_store_explicit(&bottom, b + 1, memory_order_relaxed);
    }
    return i;
}

static item *steal(void) {
    long t = atomic_load_explicit(&top, memory_order_acquire);
    atomic_thread_fence(memory_order_seq_cst);
    long b = atomic_load_explicit(&bottom, memory_order_acquire);
    if (t >= b) return NULL;
    item *i = atomic_load_explicit(&slots[t % SIZE], memory_order_relaxed);
    if (!atomic_compare_exchange_strong_explicit(&top, &t, t + 1, memory_order_seq_cst, memory_order_relaxed)) return NULL;
    return i;
}

static void consume(item *i) {
    if (i) atomic_fetch_add_explicit(&sum, i->payload, memory_order_relaxed); // RACE:payload:B
}

static void owner(void) {
    for (int n = 0; n < ITEMS; n++) {
        items[n].payload = 1 << n; // RACE:payload:A
        push(&items[n]);
    }
    item *i;
    while ((i = take())) consume(i);
}

static void thief(void) {
    consume(steal());
    consume(steal());
}

int main(void) {
    RUN(owner, thief);
    printf("%d\n", atomic_load(&sum));
    return 0;
}
