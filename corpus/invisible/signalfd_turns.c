/* Two threads take turns by two signals that every thread blocks and that are read from descriptors. Correct. */
#include "corpus.h"
#include <signal.h>
#include <sys/signalfd.h>

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static const int numbers[2] = {SIGUSR1, SIGUSR2};
static int descriptors[2];

static void open_descriptor(int n) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, numbers[n]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    MUST((descriptors[n] = signalfd(-1, &set, 0)) >= 0);
}

static void wait_for_signal(int n) {
    struct signalfd_siginfo info;
    MUST(read(descriptors[n], &info, sizeof info) == sizeof info);
}

static void ping(void) {
    for (int i = 0; i < ROUNDS; i++) {
        ball++;
        MUST(!kill(getpid(), numbers[0]));
        wait_for_signal(1);
    }
}

static void pong(void) {
    for (int i = 0; i < ROUNDS; i++) {
        wait_for_signal(0);
        ball += 2;
        MUST(!kill(getpid(), numbers[1]));
    }
}

int main(void) {
    open_descriptor(0);
    open_descriptor(1);
    RUN(ping, pong);
    printf("%ld\n", ball);
    return 0;
}
