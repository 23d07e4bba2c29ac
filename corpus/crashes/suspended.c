/* SIGABRT is blocked but for a sigsuspend, in which it arrives: the mask that comes back afterwards holds it, and the program ends all the same. */
#include "corpus.h"
#include <signal.h>

int main(void) {
    sigset_t blocked, open;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGABRT);
    sigprocmask(SIG_BLOCK, &blocked, &open);
    kill(getpid(), SIGABRT);
    sigdelset(&open, SIGABRT);
    sigsuspend(&open); // CRASH
    puts("alive");
    return 0;
}
