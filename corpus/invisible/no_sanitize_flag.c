/* A message handed over by a flag whose functions are kept from instrumentation. On x86 a volatile store behind a compiler barrier is a release and a
 * volatile load before one an acquire: this is how kernels and older libraries write it. Correct on x86, and no other access races. */
#include "corpus.h"
#include <sched.h>

static volatile int ready;
static int message;

__attribute__((noinline, no_sanitize("thread"))) static void publish(void) {
    __asm__ volatile("" : : : "memory");
    ready = 1;
}

__attribute__((noinline, no_sanitize("thread"))) static int is_published(void) {
    int seen = ready;
    __asm__ volatile("" : : : "memory");
    return seen;
}

static void producer(void) {
    message = 42;
    publish();
}

static void consumer(void) {
    while (!is_published()) sched_yield();
    printf("%d\n", message);
}

int main(void) {
    RUN(producer, consumer);
    return 0;
}
