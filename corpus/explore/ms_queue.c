/* Michael and Scott's queue, with a fixed pool of nodes. Weakened: the node is linked in with a relaxed compare-exchange, so who dequeues it does not see its value.
 * With -DCORRECT it is a release. In the original suite this race shows in every run. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

#ifdef CORRECT
#define LINK memory_order_release
#else
#define LINK memory_order_relaxed
#endif

typedef struct node {
    int value;
    _Atomic(struct node *) next;
} node;

static node pool[4];
static _Atomic(node *) head = &pool[0], tail = &pool[0];
static int received;

static void enqueue(node *fresh, int value) {
    fresh->value = value; // RACE:value:A
    atomic_store_explicit(&fresh->next, NULL, memory_order_relaxed);
    for (;;) {
        node *last = atomic_load_explicit(&tail, memory_order_acquire), *next = atomic_load_explicit(&last->next, memory_order_acquire);
        if (next) {
            atomic_compare_exchange_strong_explicit(&tail, &last, next, LINK, memory_order_relaxed);
        } else if (atomic_compare_exchange_strong_explicit(&last->next, &next, fresh, LINK, memory_order_relaxed)) {
            atomic_compare_exchange_strong_explicit(&tail, &last, fresh, LINK, memory_order_relaxed);
            return;
        }
    }
}

static int dequeue(int *value) {
    for (;;) {
        node *first = atomic_load_explicit(&head, memory_order_acquire), *next = atomic_load_explicit(&first->next, memory_order_acquire);
        if (!next) return 0;
        int seen = next->value; // RACE:value:B
        if (atomic_compare_exchange_strong_explicit(&head, &first, next, memory_order_acq_rel, memory_order_relaxed)) {
            *value = seen;
            return 1;
        }
    }
}

static void producer(void) {
    enqueue(&pool[1], 1);
    enqueue(&pool[2], 10);
}

static void consumer(void) {
    for (int n = 0; n < 2;) {
        int value;
        if (dequeue(&value)) {
            received += value;
            n++;
        } else {
            sched_yield();
        }
    }
}

int main(void) {
    RUN(producer, consumer);
    printf("%d\n", received);
    return 0;
}
