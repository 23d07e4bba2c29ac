/* A handler of another signal crashes, on the program's own alternate stack. */
#include "corpus.h"
#include <signal.h>
#include <string.h>

static int *volatile nowhere;
static char alternate[65536];

static void on_signal(int number) { *nowhere = number; } // CRASH

static void *worker(void *argument) {
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    raise(SIGUSR1);
    return argument;
}

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    pthread_join(start_with(worker, NULL), NULL);
    return 0;
}
