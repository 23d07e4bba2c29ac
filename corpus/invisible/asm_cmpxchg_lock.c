/* A spin lock of inline assembly: `lock cmpxchg` takes it, a plain `mov` gives it back, which on x86 is a release. Correct. */
#include "corpus.h"
#include <sched.h>

static int lock;

static void acquire(int *word) {
    for (;;) {
        int expected = 0;
        __asm__ volatile("lock cmpxchgl %2, %1" : "+a"(expected), "+m"(*word) : "r"(1) : "memory", "cc");
        if (expected == 0) return;
        sched_yield();
    }
}

static void release(int *word) { __asm__ volatile("movl $0, %0" : "=m"(*word) : : "memory"); }

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
