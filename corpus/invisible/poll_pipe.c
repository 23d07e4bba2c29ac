/* As with pipes, but the receiver waits in poll and goes on as soon as there is something to read: it empties the pipe only afterwards. Correct: poll returns after the write. */
#include "corpus.h"
#include <poll.h>

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static int pipes[2][2];

static void send_token(int n) {
    char token = 't';
    MUST(write(pipes[n][1], &token, 1) == 1);
}

static void wait_for_token(int n) {
    struct pollfd wanted = {.fd = pipes[n][0], .events = POLLIN};
    while (poll(&wanted, 1, -1) != 1) continue;
}

static void empty(int n) {
    char token;
    MUST(read(pipes[n][0], &token, 1) == 1);
}

static void ping(void) {
    for (int i = 0; i < ROUNDS; i++) {
        ball++;
        send_token(0);
        wait_for_token(1);
        ball += 0;
        empty(1);
    }
}

static void pong(void) {
    for (int i = 0; i < ROUNDS; i++) {
        wait_for_token(0);
        ball += 0;
        empty(0);
        ball += 2;
        send_token(1);
    }
}

int main(void) {
    MUST(!pipe(pipes[0]) && !pipe(pipes[1]));
    RUN(ping, pong);
    printf("%ld\n", ball);
    return 0;
}
