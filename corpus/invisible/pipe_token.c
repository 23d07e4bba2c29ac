/* Two threads pass a token back and forth through two pipes; who has it changes a plain variable. Correct: a read returns after the write that it reads from. */
#include "corpus.h"

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static int pipes[2][2];

static void send_token(int n) {
    char token = 't';
    MUST(write(pipes[n][1], &token, 1) == 1);
}

static void receive_token(int n) {
    char token;
    MUST(read(pipes[n][0], &token, 1) == 1);
}

static void ping(void) {
    for (int i = 0; i < ROUNDS; i++) {
        ball++;
        send_token(0);
        receive_token(1);
    }
}

static void pong(void) {
    for (int i = 0; i < ROUNDS; i++) {
        receive_token(0);
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
