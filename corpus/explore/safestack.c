/* Vyukov's SafeStack: a lock-free stack of indices whose pop marks the element before it moves the head. With three threads and at least five context switches an index can be
 * handed out twice (ABA); then two threads own the same cell. All atomics are seq_cst, so no weak memory is needed. Hard to find: almost every random schedule is harmless. */
#include "corpus.h"
#include <assert.h>
#include <sched.h>
#include <stdatomic.h>

enum { CELLS = 3, THREADS = 3 };
static struct {
    int owner;
    atomic_int next;
} cells[CELLS];
static atomic_int head, count = CELLS;

static int pop(void) {
    while (atomic_load(&count) > 1) {
        int first = atomic_load(&head), next = atomic_exchange(&cells[first].next, -1);
        if (next >= 0) {
            int expected = first;
            if (atomic_compare_exchange_strong(&head, &expected, next)) {
                atomic_fetch_sub(&count, 1);
                return first;
            }
            atomic_exchange(&cells[first].next, next);
        }
    }
    return -1;
}

static void push(int index) {
    int first = atomic_load(&head);
    do atomic_store(&cells[index].next, first);
    while (!atomic_compare_exchange_strong(&head, &first, index));
    atomic_fetch_add(&count, 1);
}

static void *worker(void *argument) {
    int me = (int)(long)argument;
    turn(me);
    for (int round = 0; round < 2; round++) {
        int mine = -1;
        for (int tries = 0; mine < 0 && tries < 100; tries++)
            if ((mine = pop()) < 0) sched_yield();
        if (mine < 0) continue;
        cells[mine].owner = me;         // RACE:owner:A
        assert(cells[mine].owner == me); // RACE:owner:A ASSERT:1
        push(mine);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < CELLS; i++) atomic_store(&cells[i].next, i + 1 < CELLS ? i + 1 : -1);
    for (long i = 0; i < THREADS; i++) threads[i] = start_with(worker, (void *)i);
    for (int i = 0; i < THREADS; i++) finish(threads[i]);
    printf("%d\n", atomic_load(&count));
    return 0;
}
