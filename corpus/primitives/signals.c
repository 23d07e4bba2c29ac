/* Signals: sigaction with raise, pthread_kill to a chosen thread, a blocked signal taken by sigwait. The handler touches only a volatile sig_atomic_t of its own thread's making. */
#include "corpus.h"
#include <signal.h>
#include <string.h>

static volatile sig_atomic_t raised;
static _Thread_local volatile sig_atomic_t mine;
static pthread_barrier_t ready;
static int waited, got_mine;

static void on_signal(int number) {
    if (number == SIGUSR1) raised++;
    if (number == SIGUSR2) mine++;
}

static void target(void) {
    pthread_barrier_wait(&ready);
    while (!mine) usleep(500);
    got_mine = mine;
}

static void taker(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    int number = 0;
    sigwait(&set, &number);
    waited = number == SIGTERM;
}

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    pthread_barrier_init(&ready, NULL, 2);
    pthread_t a = start(target), b = start(taker);
    pthread_barrier_wait(&ready);
    pthread_kill(a, SIGUSR2);
    pthread_kill(b, SIGTERM);
    finish(a);
    finish(b);
    printf("%d %d %d\n", (int)raised, got_mine, waited);
    return 0;
}
