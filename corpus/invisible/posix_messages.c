/* Two threads take turns by two POSIX message queues. Correct. */
#include "corpus.h"
#include <fcntl.h>
#include <mqueue.h>

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static mqd_t queues[2];

static void open_queue(int n) {
    char name[64];
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 1};
    snprintf(name, sizeof name, "/raddle-corpus-%d-%d", (int)getpid(), n);
    queues[n] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    MUST(queues[n] != (mqd_t)-1);
    mq_unlink(name);
}

static void receive_message(int n) {
    char text;
    MUST(mq_receive(queues[n], &text, 1, NULL) == 1);
}

static void ping(void) {
    for (int i = 0; i < ROUNDS; i++) {
        ball++;
        MUST(!mq_send(queues[0], "m", 1, 0));
        receive_message(1);
    }
}

static void pong(void) {
    for (int i = 0; i < ROUNDS; i++) {
        receive_message(0);
        ball += 2;
        MUST(!mq_send(queues[1], "m", 1, 0));
    }
}

int main(void) {
    open_queue(0);
    open_queue(1);
    RUN(ping, pong);
    printf("%ld\n", ball);
    return 0;
}
