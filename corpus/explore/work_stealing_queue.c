/* A work-stealing queue in the manner of the THE protocol: the owner pops without the lock unless it meets a thief. Faulty: pop reads the head before it moves the tail,
 * so that owner and thief can both take the last element. All atomics are seq_cst. -DCORRECT swaps the two steps and settles the conflict under the lock. */
#include "corpus.h"
#include <assert.h>
#include <stdatomic.h>

enum { ITEMS = 2 };
MUTEX(lock);
static atomic_int head, tail, taken[ITEMS];

static void take_item(int n) {
    assert(atomic_fetch_add(&taken[n], 1) == 0); // ASSERT:1
}

static void push(void) { atomic_fetch_add(&tail, 1); }

static int pop(void) {
    int t = atomic_load(&tail) - 1;
#ifdef CORRECT
    atomic_store(&tail, t);
    int h = atomic_load(&head);
    if (h <= t) {
        if (h < t) {
            take_item(t);
            return 1;
        }
    }
    atomic_store(&tail, t + 1);
    LOCK(lock);
    int won = atomic_load(&head) <= t;
    if (won) atomic_store(&tail, t);
    UNLOCK(lock);
    if (won) take_item(t);
    return won;
#else
    int h = atomic_load(&head);
    atomic_store(&tail, t);
    if (h <= t) {
        take_item(t);
        return 1;
    }
    atomic_store(&tail, t + 1);
    return 0;
#endif
}

static void steal(void) {
    LOCK(lock);
    int h = atomic_load(&head);
    atomic_store(&head, h + 1);
    if (h < atomic_load(&tail))
        take_item(h);
    else
        atomic_store(&head, h);
    UNLOCK(lock);
}

static void owner(void) {
    for (int i = 0; i < ITEMS; i++) push();
    for (int i = 0; i < ITEMS; i++)
        if (!pop()) break;
}

static void thief(void) {
    turn(1);
    steal();
}

int main(void) {
    RUN(owner, thief);
    printf("done\n");
    return 0;
}
