/* Two threads play ping-pong over two pipes. Pipes inside one process are ordered, not recorded: the bytes come from the program itself. */
#include "corpus.h"

static int there[2], back[2], rounds;

static void ping(void) {
    char ball = 'a';
    for (int i = 0; i < 10; i++) {
        MUST(write(there[1], &ball, 1) == 1);
        MUST(read(back[0], &ball, 1) == 1);
    }
    rounds = ball - 'a';
}

static void pong(void) {
    char ball;
    for (int i = 0; i < 10; i++) {
        MUST(read(there[0], &ball, 1) == 1);
        ball++;
        MUST(write(back[1], &ball, 1) == 1);
    }
}

int main(void) {
    MUST(pipe(there) == 0 && pipe(back) == 0);
    RUN(ping, pong);
    printf("%d\n", rounds);
    return 0;
}
