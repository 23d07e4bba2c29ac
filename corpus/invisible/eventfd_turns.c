/* Two threads take turns by event counters: read waits until the other has written. Correct. */
#include "corpus.h"
#include <stdint.h>
#include <sys/eventfd.h>

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static int counters[2];

static void raise_counter(int n) {
    uint64_t one = 1;
    MUST(write(counters[n], &one, sizeof one) == sizeof one);
}

static void wait_for_counter(int n) {
    uint64_t value;
    MUST(read(counters[n], &value, sizeof value) == sizeof value && value == 1);
}

static void ping(void) {
    for (int i = 0; i < ROUNDS; i++) {
        ball++;
        raise_counter(0);
        wait_for_counter(1);
    }
}

static void pong(void) {
    for (int i = 0; i < ROUNDS; i++) {
        wait_for_counter(0);
        ball += 2;
        raise_counter(1);
    }
}

int main(void) {
    for (int i = 0; i < 2; i++) MUST((counters[i] = eventfd(0, 0)) >= 0);
    RUN(ping, pong);
    printf("%ld\n", ball);
    return 0;
}
