/* Two threads take turns by a word that both change by atomics and wait for by futex system calls through syscall(). Correct, and visible: the atomics
 * are instrumented. */
#include "corpus.h"
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { ROUNDS = 20 };
static atomic_int turns;
static long ball;

static void wait_for(int wanted) {
    int seen;
    while ((seen = atomic_load(&turns)) != wanted) syscall(SYS_futex, &turns, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void pass_on(int next) {
    atomic_store(&turns, next);
    syscall(SYS_futex, &turns, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void ping(void) {
    for (int i = 0; i < ROUNDS; i++) {
        wait_for(2 * i);
        ball++;
        pass_on(2 * i + 1);
    }
}

static void pong(void) {
    for (int i = 0; i < ROUNDS; i++) {
        wait_for(2 * i + 1);
        ball += 2;
        pass_on(2 * i + 2);
    }
}

int main(void) {
    RUN(ping, pong);
    printf("%ld\n", ball);
    return 0;
}
