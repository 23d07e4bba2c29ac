/* A program that lives with its faults: a handler of SIGSEGV jumps back, ten times, from a null pointer, on a stack of its own. Nobody may take these for crashes. */
#include "corpus.h"
#include <setjmp.h>
#include <signal.h>
#include <string.h>

static int *volatile nowhere;
static __thread sigjmp_buf back;

static void on_fault(int number) { siglongjmp(back, number); }

static void *worker(void *argument) {
    int *recovered = argument;
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    for (volatile int i = 0; i < 10; i++) {
        if (sigsetjmp(back, 1) == 0) {
            *nowhere = 1;
        } else {
            ++*recovered;
        }
    }
    return NULL;
}

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_fault;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGSEGV, &action, NULL);
    int recovered = 0;
    pthread_join(start_with(worker, &recovered), NULL);
    printf("%d\n", recovered);
    return 0;
}
