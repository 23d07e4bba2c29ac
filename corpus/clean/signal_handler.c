/* A handler that runs on the thread it interrupts and writes that thread's own plain variable, and a lock-free atomic that another thread polls. Clean. */
#include "corpus.h"
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

static volatile int own;
static atomic_int shared;

static void handler(int number) {
    (void)number;
    own = own + 1;
    atomic_fetch_add(&shared, 1);
}

static void watcher(void) {
    while (atomic_load(&shared) < 3) usleep(500);
}

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGUSR1, &action, NULL);
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    pthread_t thread = start(watcher);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    for (int i = 0; i < 3; i++) {
        own = own + 1;
        raise(SIGUSR1);
    }
    finish(thread);
    printf("%d\n", own);
    return 0;
}
