/* A handler that interrupts whatever runs allocates memory. Correct: it sets a flag. */
#include "corpus.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
static volatile sig_atomic_t came;

static void handler(int signal) {
    (void)signal;
#ifdef WRONG
    void *volatile block = malloc(8); // MISUSE:handler
    free(block); // MISUSE:handler
#endif
    came = 1;
}

int main(void) {
    signal(SIGALRM, handler);
    struct itimerval soon = {.it_value = {.tv_usec = 1000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    for (volatile long i = 0; !came && i < 400000000; i++) continue;
    return !came;
}
