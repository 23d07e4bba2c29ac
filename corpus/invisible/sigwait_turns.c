/* Two threads take turns by two signals that every thread blocks and sigwait takes. Correct: sigwait returns after the signal was sent. */
#include "corpus.h"
#include <signal.h>

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static const int numbers[2] = {SIGUSR1, SIGUSR2};

static void wait_for_signal(int n) {
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, numbers[n]);
    MUST(!sigwait(&set, &number) && number == numbers[n]);
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
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    RUN(ping, pong);
    printf("%ld\n", ball);
    return 0;
}
