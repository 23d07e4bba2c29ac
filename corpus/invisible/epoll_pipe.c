/* As with pipes, but the receiver waits in epoll_wait and empties the pipe afterwards. Correct. */
#include "corpus.h"
#include <sys/epoll.h>

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static int pipes[2][2];
static int watches[2];

static void send_token(int n) {
    char token = 't';
    MUST(write(pipes[n][1], &token, 1) == 1);
}

static void receive_token(int n) {
    struct epoll_event event;
    char token;
    while (epoll_wait(watches[n], &event, 1, -1) != 1) continue;
    ball += 0;
    MUST(read(pipes[n][0], &token, 1) == 1);
}

static void watch(int n) {
    struct epoll_event event = {.events = EPOLLIN};
    watches[n] = epoll_create1(0);
    MUST(watches[n] >= 0 && !epoll_ctl(watches[n], EPOLL_CTL_ADD, pipes[n][0], &event));
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
    watch(0);
    watch(1);
    RUN(ping, pong);
    printf("%ld\n", ball);
    return 0;
}
