/* Two threads pass lines through pipes by fputs and fgets: the C library reads and writes the descriptors itself. Correct. */
#include "corpus.h"

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static int pipes[2][2];
static FILE *streams[2][2];

static void send_line(int n) { MUST(fputs("go\n", streams[n][1]) >= 0 && !fflush(streams[n][1])); }

static void receive_line(int n) {
    char line[8];
    MUST(fgets(line, sizeof line, streams[n][0]));
}

static void ping(void) {
    for (int i = 0; i < ROUNDS; i++) {
        ball++;
        send_line(0);
        receive_line(1);
    }
}

static void pong(void) {
    for (int i = 0; i < ROUNDS; i++) {
        receive_line(0);
        ball += 2;
        send_line(1);
    }
}

int main(void) {
    MUST(!pipe(pipes[0]) && !pipe(pipes[1]));
    for (int i = 0; i < 2; i++) {
        MUST((streams[i][0] = fdopen(pipes[i][0], "r")));
        MUST((streams[i][1] = fdopen(pipes[i][1], "w")));
    }
    RUN(ping, pong);
    printf("%ld\n", ball);
    return 0;
}
