/* A handler that interrupts whatever runs changes errno. Correct: it puts it back. */
#include "corpus.h"
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
static volatile sig_atomic_t came;

static void handler(int signal) { // MISUSE:handler
    (void)signal;
    int before = errno;
    errno = 77;
#ifndef WRONG
    errno = before;
#endif
    use(before);
    came = 1;
}

int main(void) {
    signal(SIGALRM, handler);
    struct itimerval soon = {.it_value = {.tv_usec = 1000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    for (volatile long i = 0; !came && i < 400000000; i++) continue;
    return !came;
}
