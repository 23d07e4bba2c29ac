/* A flag that the kernel sets: one thread prepares a message and has the kernel write the flag by process_vm_writev, the other one waits for the flag by an
 * acquiring load. Correct on Linux: the call writes after what the thread wrote before it. The load is visible, the store is not. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>
#include <sys/uio.h>

static atomic_int ready;
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
int message;

static void producer(void) {
    int one = 1;
    struct iovec from = {.iov_base = &one, .iov_len = sizeof one}, to = {.iov_base = &ready, .iov_len = sizeof one};
    message = 42;
    MUST(process_vm_writev(getpid(), &from, 1, &to, 1, 0) == (ssize_t)sizeof one);
}

static void consumer(void) {
    while (!atomic_load_explicit(&ready, memory_order_acquire)) sched_yield();
    printf("%d\n", message);
}

int main(void) {
    RUN(producer, consumer);
    return 0;
}
