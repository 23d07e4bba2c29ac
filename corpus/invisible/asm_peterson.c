/* Peterson's mutual exclusion of two threads by moves and `mfence` in inline assembly. Correct on x86: the fence keeps the load of the other's
 * flag behind the own stores, and no other order of plain moves is ever changed. */
#include "corpus.h"
#include <sched.h>

static int wants[2], turn_of;
static long counter;

static void store(int *word, int value) { __asm__ volatile("movl %1, %0" : "=m"(*word) : "r"(value) : "memory"); }

static int load(int *word) {
    int value;
    __asm__ volatile("movl %1, %0" : "=r"(value) : "m"(*word) : "memory");
    return value;
}

static void enter(int me) {
    store(&wants[me], 1);
    store(&turn_of, 1 - me);
    __asm__ volatile("mfence" : : : "memory");
    while (load(&wants[1 - me]) && load(&turn_of) == 1 - me) sched_yield();
}

static void leave(int me) { store(&wants[me], 0); }

static void *worker(void *number) {
    int me = (int)(long)number;
    for (int i = 0; i < 100; i++) {
        enter(me);
        counter++;
        leave(me);
    }
    return NULL;
}

int main(void) {
    pthread_t a = start_with(worker, (void *)0), b = start_with(worker, (void *)1);
    finish(a);
    finish(b);
    printf("%ld\n", counter);
    return 0;
}
