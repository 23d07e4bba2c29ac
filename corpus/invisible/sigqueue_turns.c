/* Two threads throw each other a ball by pthread_sigqueue and catch it by sigwaitinfo; the signal's value says how often it was thrown.
 * Correct: sigwaitinfo returns after the signal was sent. */
#include "corpus.h"
#include <signal.h>

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static pthread_t first;

static void throws(pthread_t to, int number, int times) {
    union sigval value = {.sival_int = times};
    MUST(!pthread_sigqueue(to, number, value));
}

static void catches(int number, int times) {
    sigset_t set;
    siginfo_t about;
    sigemptyset(&set);
    sigaddset(&set, number);
    MUST(sigwaitinfo(&set, &about) == number && about.si_value.sival_int == times);
}

static void pong(void) {
    for (int i = 0; i < ROUNDS; i++) {
        catches(SIGUSR1, 2 * i);
        ball += 2;
        throws(first, SIGUSR2, 2 * i + 1);
    }
}

int main(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    first = pthread_self();
    pthread_t second = start(pong);
    for (int i = 0; i < ROUNDS; i++) {
        ball++;
        throws(second, SIGUSR1, 2 * i);
        catches(SIGUSR2, 2 * i + 1);
    }
    finish(second);
    printf("%ld\n", ball);
    return 0;
}
