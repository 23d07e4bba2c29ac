/* syscall(SYS_futex): a wait that is woken, a wait on a changed word (EAGAIN) and one that times out.
 * Clean: the word is atomic with release and acquire; the futex only puts the thread to sleep. */
#include "corpus.h"
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static atomic_int word;
static int data;

static long futex_wait(int expected, const struct timespec *limit) {
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, limit, NULL, 0);
}

static void waiter(void) {
    while (atomic_load_explicit(&word, memory_order_acquire) == 0) futex_wait(0, NULL);
    data++;
}

static void waker(void) {
    turn(1);
    data = 20;
    atomic_store_explicit(&word, 1, memory_order_release);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int main(void) {
    RUN(waiter, waker);
    MUST(futex_wait(0, NULL) == -1 && errno == EAGAIN);
    struct timespec limit = {0, 3000000};
    MUST(futex_wait(1, &limit) == -1 && errno == ETIMEDOUT);
    printf("%d\n", data);
    return 0;
}
