/* Two threads take turns by timers: one arms the timer, the other reads its descriptor, which waits until it has expired. Correct: it cannot expire before it is armed. */
#include "corpus.h"
#include <stdint.h>
#include <sys/timerfd.h>

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static int timers[2];

static void arm(int n) {
    struct itimerspec soon = {.it_value = {.tv_nsec = 1000}};
    MUST(!timerfd_settime(timers[n], 0, &soon, NULL));
}

static void wait_for_timer(int n) {
    uint64_t times;
    MUST(read(timers[n], &times, sizeof times) == sizeof times && times == 1);
}

static void ping(void) {
    for (int i = 0; i < ROUNDS; i++) {
        ball++;
        arm(0);
        wait_for_timer(1);
    }
}

static void pong(void) {
    for (int i = 0; i < ROUNDS; i++) {
        wait_for_timer(0);
        ball += 2;
        arm(1);
    }
}

int main(void) {
    for (int i = 0; i < 2; i++) MUST((timers[i] = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
    RUN(ping, pong);
    printf("%ld\n", ball);
    return 0;
}
