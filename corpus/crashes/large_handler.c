/* A handler that asks for an alternate stack in a thread that has none runs on the thread's own stack, of which it uses a megabyte; what it changes in the interrupted context holds. */
#include "corpus.h"
#include <signal.h>
#include <string.h>

static volatile int handled;
static int *volatile nowhere;

__attribute__((noinline)) static int large(void) {
    volatile char room[1 << 20];
    for (unsigned i = 0; i < sizeof room; i += 4096) room[i] = 1;
    return room[4096];
}

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    ucontext_t *interrupted = context;
    handled += large();
    /* Over `movl $1, (%rax)`, which is six bytes. */
    interrupted->uc_mcontext.gregs[REG_RIP] += 6;
}

static void worker(void) {
    for (int i = 0; i < 3; i++) __asm__ volatile("movl $1, (%0)" : : "a"(nowhere) : "memory");
}

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, NULL);
    RUN(worker);
    printf("%d\n", handled);
    return 0;
}
