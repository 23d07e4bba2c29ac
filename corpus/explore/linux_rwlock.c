/* The read-write spin lock of the Linux kernel: a bias that readers decrement by one and a writer by all of it.
 * Weakened: the writer's unlock does not release. With -DCORRECT it does. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

#ifdef CORRECT
#define WRITE_UNLOCK memory_order_release
#else
#define WRITE_UNLOCK memory_order_relaxed
#endif

enum { BIAS = 0x00100000 };
static atomic_int lock = BIAS;
static int data;

static void read_lock(void) {
    while (atomic_fetch_sub_explicit(&lock, 1, memory_order_acquire) <= 0) {
        atomic_fetch_add_explicit(&lock, 1, memory_order_relaxed);
        while (atomic_load_explicit(&lock, memory_order_relaxed) <= 0) sched_yield();
    }
}

static void read_unlock(void) { atomic_fetch_add_explicit(&lock, 1, memory_order_release); }

static void write_lock(void) {
    while (atomic_fetch_sub_explicit(&lock, BIAS, memory_order_acquire) != BIAS) {
        atomic_fetch_add_explicit(&lock, BIAS, memory_order_relaxed);
        while (atomic_load_explicit(&lock, memory_order_relaxed) != BIAS) sched_yield();
    }
}

static void write_unlock(void) { atomic_fetch_add_explicit(&lock, BIAS, WRITE_UNLOCK); }

static void reader(void) {
    read_lock();
    use(data); // RACE:data:B
    read_unlock();
}

static void writer(void) {
    write_lock();
    data++; // RACE:data:A
    write_unlock();
}

int main(void) {
    RUN(writer, reader);
    printf("%d\n", data);
    return 0;
}
