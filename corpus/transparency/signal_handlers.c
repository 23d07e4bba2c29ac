/* Timer signals interrupt two threads that lock, allocate and print to buffers; the handler uses an alternate stack and async-signal-safe calls only.
 * errno must survive, interrupted sleeps must restart. Clean: the handler touches an atomic and its own descriptor. */
#include "corpus.h"
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>

MUTEX(m);
static atomic_int ticks, saved;
static int pipe_ends[2];
static char alternate[65536];
static int sum;

static void on_tick(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    int before = errno;
    ssize_t written = write(pipe_ends[1], "t", 1);
    (void)written;
    atomic_fetch_add(&ticks, 1);
    errno = before;
}

static void worker(void) {
    while (atomic_load(&ticks) < 5) {
        errno = 123;
        for (int i = 0; i < 50; i++) {
            LOCK(m);
            sum++;
            UNLOCK(m);
            char *block = malloc(64);
            snprintf(block, 64, "%d", i);
            free(block);
        }
        if (errno != 123) atomic_store(&saved, 1);
    }
}

int main(void) {
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    MUST(pipe(pipe_ends) == 0);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_tick;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    RUN(worker, worker);
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    char byte = 0;
    MUST(read(pipe_ends[0], &byte, 1) == 1);
    printf("%c %d %d\n", byte, atomic_load(&ticks) >= 5, atomic_load(&saved));
    return 0;
}
