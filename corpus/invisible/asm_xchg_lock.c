/* A spin lock of inline assembly: `xchg` takes it, `xchg` gives it back. No access to the lock is instrumented, so no tool that relies on
 * instrumentation sees it. Correct: `xchg` with memory is a full barrier, and the clobber keeps the compiler from moving accesses across. */
#include "corpus.h"
#include <sched.h>

static int lock;

static int swap(int *word, int value) {
    __asm__ volatile("xchgl %0, %1" : "+r"(value), "+m"(*word) : : "memory");
    return value;
}

static void acquire(int *word) {
    while (swap(word, 1)) sched_yield();
}

static void release(int *word) { swap(word, 0); }

static long counter;

static void worker(void) {
    for (int i = 0; i < 100; i++) {
        acquire(&lock);
        counter++;
        release(&lock);
    }
}

int main(void) {
    RUN(worker, worker);
    printf("%ld\n", counter);
    return 0;
}
