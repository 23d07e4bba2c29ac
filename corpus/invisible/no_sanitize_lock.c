/* A spin lock whose functions are kept from instrumentation and call others, so that the compiler's hooks for entering a function may be there all the
 * same. Correct: `xchg` takes it, a volatile store behind a compiler barrier gives it back. */
#include "corpus.h"
#include <sched.h>

static volatile int lock;

__attribute__((noinline, no_sanitize("thread"))) static void acquire(volatile int *word) {
    for (;;) {
        int taken = 1;
        __asm__ volatile("xchgl %0, %1" : "+r"(taken), "+m"(*word) : : "memory");
        if (!taken) return;
        while (*word) sched_yield();
    }
}

__attribute__((noinline, no_sanitize("thread"))) static void release(volatile int *word) {
    __asm__ volatile("" : : : "memory");
    *word = 0;
}

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
