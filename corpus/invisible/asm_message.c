/* A message handed over by a flag that only inline assembly touches: `xchg` sets it, a loop of moves waits for it. Correct. */
#include "corpus.h"
#include <sched.h>

static int ready;
static int message[4];

static void producer(void) {
    for (int i = 0; i < 4; i++) message[i] = i + 1;
    int one = 1;
    __asm__ volatile("xchgl %0, %1" : "+r"(one), "+m"(ready) : : "memory");
}

static void consumer(void) {
    int seen;
    for (;;) {
        __asm__ volatile("lock; addl $0, (%%rsp)\n\tmovl %1, %0" : "=r"(seen) : "m"(ready) : "memory", "cc");
        if (seen) break;
        sched_yield();
    }
    printf("%d\n", message[0] + message[1] + message[2] + message[3]);
}

int main(void) {
    RUN(producer, consumer);
    return 0;
}
