/* _exit from a signal handler while threads hold locks: the status is the handler's, nothing runs afterwards, what was found before is delivered. */
#include "corpus.h"
#include <signal.h>

MUTEX(m);

static void leave(int number) {
    (void)number;
    _exit(7);
}

static void holds(void) {
    LOCK(m);
    turn(100);
    UNLOCK(m);
}

int main(void) {
    signal(SIGUSR1, leave);
    start(holds);
    turn(1);
    printf("leaving\n");
    fflush(stdout);
    raise(SIGUSR1);
    return 0;
}
