/* Use case 5, an atomicity violation: increment should be atomic but loads and stores x in two steps. x is an atomic variable, so nothing races.
 * -DCORRECT holds a mutex in increment. */
#include "corpus.h"
#include <stdatomic.h>

MUTEX(m);
atomic_int x;

void increment(void) {
#ifdef CORRECT
    LOCK(m);
#endif
    int temp = atomic_load(&x); // PROPERTY:1
    temp++;
    atomic_store(&x, temp); // PROPERTY:2
#ifdef CORRECT
    UNLOCK(m);
#endif
}

static void worker(void) {
    turn(1);
    increment();
}

int main(void) {
    (void)m;
    pthread_t thread = start(worker);
    increment();
    finish(thread);
    printf("%d\n", atomic_load(&x));
    return 0;
}
