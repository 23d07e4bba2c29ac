/* A handler that is used once (SA_RESETHAND) says something and returns; the fault comes again, with its default action. */
#include "corpus.h"
#include <signal.h>
#include <string.h>

static int *volatile nowhere;

static void on_fault(int number) {
    (void)number;
    ssize_t written = write(1, "once\n", 5);
    (void)written;
}

static void worker(void) { *nowhere = 1; } // CRASH

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_fault;
    action.sa_flags = SA_RESETHAND;
    sigaction(SIGSEGV, &action, NULL);
    RUN(worker);
    return 0;
}
