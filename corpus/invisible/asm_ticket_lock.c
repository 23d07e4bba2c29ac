/* A ticket lock of inline assembly: `lock xadd` draws a ticket, the holder raises the number that is served. Correct. */
#include "corpus.h"
#include <sched.h>

struct ticket_lock {
    int next, served;
};

static struct ticket_lock lock;

static void acquire(struct ticket_lock *l) {
    int mine = 1, now;
    __asm__ volatile("lock xaddl %0, %1" : "+r"(mine), "+m"(l->next) : : "memory", "cc");
    for (;;) {
        __asm__ volatile("movl %1, %0" : "=r"(now) : "m"(l->served) : "memory");
        if (now == mine) return;
        sched_yield();
    }
}

static void release(struct ticket_lock *l) { __asm__ volatile("lock incl %0" : "+m"(l->served) : : "memory", "cc"); }

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
