/* 58: two threads swap two values through two atomic flags that carry the values and signal at the same time. Clean by C11: each flag is stored with release after
 * the read of the other's variable and loaded with acquire before the write to it. RaceQuest, ThreadSanitizer and Helgrind all cry wolf on the original. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

static int a = 1, b = 2;
static atomic_int flag1, flag2;

static void worker1(void) {
    atomic_store_explicit(&flag1, b, memory_order_release);
    int seen;
    while (!(seen = atomic_load_explicit(&flag2, memory_order_acquire))) sched_yield();
    a = seen;
}

static void worker2(void) {
    atomic_store_explicit(&flag2, a, memory_order_release);
    int seen;
    while (!(seen = atomic_load_explicit(&flag1, memory_order_acquire))) sched_yield();
    b = seen;
}

int main(void) {
    RUN(worker1, worker2);
    printf("%d %d\n", a, b);
    return 0;
}
