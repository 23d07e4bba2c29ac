/* A handler that leaves by siglongjmp, and one that interrupts a blocking read (EINTR): shadow stacks and locks of a tool must survive both. */
#include "corpus.h"
#include <setjmp.h>
#include <signal.h>
#include <string.h>

static sigjmp_buf back;
static volatile sig_atomic_t jumps;

static void jump(int number) {
    (void)number;
    siglongjmp(back, 1);
}
static void nothing(int number) { (void)number; }

static void *interrupter(void *target) {
    turn(1);
    pthread_kill(*(pthread_t *)target, SIGUSR2);
    return NULL;
}

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = jump;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = nothing;
    sigaction(SIGUSR2, &action, NULL);
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR1);
        else
            jumps++;
    }
    int ends[2];
    MUST(pipe(ends) == 0);
    pthread_t me = pthread_self(), thread = start_with(interrupter, &me);
    char byte;
    int interrupted = read(ends[0], &byte, 1) == -1 && errno == EINTR;
    finish(thread);
    printf("%d %d\n", (int)jumps, interrupted);
    return 0;
}
