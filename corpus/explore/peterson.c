/* Peterson's mutual exclusion with seq_cst atomics around a plain counter. Clean; any weaker order on the flags breaks it. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

static atomic_int want[2], victim;
static int counter;

static void visit(int me) {
    atomic_store(&want[me], 1);
    atomic_store(&victim, me);
    while (atomic_load(&want[1 - me]) && atomic_load(&victim) == me) sched_yield();
    counter++;
    atomic_store(&want[me], 0);
}

static void t0(void) { visit(0); }
static void t1(void) { visit(1); }

int main(void) {
    RUN(t0, t1);
    printf("%d\n", counter);
    return 0;
}
