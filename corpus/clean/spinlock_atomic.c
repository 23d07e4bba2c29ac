/* A test-and-set spin lock from an atomic flag around a plain counter. Clean: acquire on success, release on clear. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

static atomic_flag lock = ATOMIC_FLAG_INIT;
static int counter;

static void worker(void) {
    for (int i = 0; i < 20; i++) {
        while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) sched_yield();
        counter++;
        atomic_flag_clear_explicit(&lock, memory_order_release);
    }
}

int main(void) {
    RUN(worker, worker);
    printf("%d\n", counter);
    return 0;
}
