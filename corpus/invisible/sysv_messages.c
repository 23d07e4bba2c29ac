/* Two threads take turns by messages of two types in a System V queue. Correct. */
#include "corpus.h"
#include <sys/ipc.h>
#include <sys/msg.h>

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static int queue;

static void send_message(int n) {
    struct {
        long type;
        char text[1];
    } message = {n + 1, {'m'}};
    MUST(!msgsnd(queue, &message, 1, 0));
}

static void receive_message(int n) {
    struct {
        long type;
        char text[1];
    } message;
    MUST(msgrcv(queue, &message, 1, n + 1, 0) == 1);
}

static void ping(void) {
    for (int i = 0; i < ROUNDS; i++) {
        ball++;
        send_message(0);
        receive_message(1);
    }
}

static void pong(void) {
    for (int i = 0; i < ROUNDS; i++) {
        receive_message(0);
        ball += 2;
        send_message(1);
    }
}

int main(void) {
    MUST((queue = msgget(IPC_PRIVATE, 0600)) >= 0);
    RUN(ping, pong);
    msgctl(queue, IPC_RMID, NULL);
    printf("%ld\n", ball);
    return 0;
}
