/* The program's own SIGSEGV handler sees the fault address and ends the process in its own way; a tool must not take the signal away. */
#include "corpus.h"
#include <signal.h>
#include <string.h>

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    _exit(info->si_addr == (void *)16 ? 9 : 1);
}

static int *volatile nowhere = (int *)16;

static void faulty(void) { *nowhere = 0; }

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    RUN(faulty);
    return 0;
}
