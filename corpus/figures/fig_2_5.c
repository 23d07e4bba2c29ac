/* Figure 2.5: ad-hoc synchronisation, a loop over an atomic flag. Sequentially consistent atomics order the tasks: clean.
 * RaceQuest does not know this kind of synchronisation; the recorded value of the atomic load makes it known. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

static atomic_int x;
static int task;

static void waiter(void) {
    while (atomic_load(&x) == 0) sched_yield();
    task = task * 10 + 2;
}

static void signaler(void) {
    task = 1;
    atomic_store(&x, 1);
}

int main(void) {
    RUN(waiter, signaler);
    printf("%d\n", task);
    return 0;
}
