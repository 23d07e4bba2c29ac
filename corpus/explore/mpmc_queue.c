/* A bounded queue for many producers and consumers: one word holds the read and write tickets, a second counter says how many writes are complete.
 * Weakened: completing a write is relaxed, so a consumer can take an element whose contents it does not see. With -DCORRECT it is a release. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

#ifdef CORRECT
#define COMPLETE memory_order_release
#else
#define COMPLETE memory_order_relaxed
#endif

enum { SIZE = 4 };
static atomic_uint tickets_written, tickets_read, written;
static int elements[SIZE];
static atomic_int sum;

static void produce(int value) {
    unsigned mine = atomic_fetch_add_explicit(&tickets_written, 1, memory_order_acq_rel);
    elements[mine % SIZE] = value; // RACE:element:A
    while (atomic_load_explicit(&written, memory_order_relaxed) != mine) sched_yield();
    atomic_fetch_add_explicit(&written, 1, COMPLETE);
}

static void consume(void) {
    unsigned mine = atomic_fetch_add_explicit(&tickets_read, 1, memory_order_acq_rel);
    while ((int)(atomic_load_explicit(&written, memory_order_acquire) - mine) <= 0) sched_yield();
    atomic_fetch_add_explicit(&sum, elements[mine % SIZE], memory_order_relaxed); // RACE:element:B
}

static void producer(void) {
    produce(1);
    produce(10);
}

static void consumer(void) {
    consume();
    consume();
}

int main(void) {
    RUN(producer, consumer);
    printf("%d\n", atomic_load(&sum));
    return 0;
}
