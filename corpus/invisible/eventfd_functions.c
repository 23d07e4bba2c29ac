/* Two threads take turns by eventfd_write and eventfd_read, which call the kernel inside the C library. Correct. */
#include "corpus.h"
#include <sys/eventfd.h>

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static int counters[2];

static void wait_for_counter(int n) {
    eventfd_t value;
    MUST(!eventfd_read(counters[n], &value) && value == 1);
}

static void ping(void) {
    for (int i = 0; i < ROUNDS; i++) {
        ball++;
        MUST(!eventfd_write(counters[0], 1));
        wait_for_counter(1);
    }
}

static void pong(void) {
    for (int i = 0; i < ROUNDS; i++) {
        wait_for_counter(0);
        ball += 2;
        MUST(!eventfd_write(counters[1], 1));
    }
}

int main(void) {
    for (int i = 0; i < 2; i++) MUST((counters[i] = eventfd(0, 0)) >= 0);
    RUN(ping, pong);
    printf("%ld\n", ball);
    return 0;
}
