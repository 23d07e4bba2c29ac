/* Figure 6.16: increment reads and writes an atomic variable in two steps. No data race, but an increment can be lost: an atomicity violation of `increment`. */
#include "corpus.h"
#include <stdatomic.h>

static atomic_int x;

static void increment(void) {
    int temp = atomic_load(&x); // ATOMICITY:1
    temp++;
    atomic_store(&x, temp); // ATOMICITY:2
}

static void worker(void) {
    turn(1);
    increment();
}

int main(void) {
    pthread_t thread = start(worker);
    increment();
    finish(thread);
    printf("%d\n", atomic_load(&x));
    return 0;
}
