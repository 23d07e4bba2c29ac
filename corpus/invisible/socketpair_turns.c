/* Two threads pass a token through a pair of connected sockets. Correct. */
#include "corpus.h"
#include <sys/socket.h>

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static int ends[2];

static void send_token(int end) {
    char token = 't';
    MUST(send(ends[end], &token, 1, 0) == 1);
}

static void receive_token(int end) {
    char token;
    MUST(recv(ends[1 - end], &token, 1, 0) == 1);
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
    MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    RUN(ping, pong);
    printf("%ld\n", ball);
    return 0;
}
