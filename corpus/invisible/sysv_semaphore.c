/* Two threads take turns by System V semaphores. Correct: semop waits until the other has raised the semaphore. */
#include "corpus.h"
#include <sys/ipc.h>
#include <sys/sem.h>

enum { ROUNDS = 20 };
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long ball;
static int set;

static void change(int n, int by) {
    struct sembuf operation = {.sem_num = (unsigned short)n, .sem_op = (short)by};
    MUST(!semop(set, &operation, 1));
}

static void ping(void) {
    for (int i = 0; i < ROUNDS; i++) {
        ball++;
        change(0, 1);
        change(1, -1);
    }
}

static void pong(void) {
    for (int i = 0; i < ROUNDS; i++) {
        change(0, -1);
        ball += 2;
        change(1, 1);
    }
}

int main(void) {
    MUST((set = semget(IPC_PRIVATE, 2, 0600)) >= 0);
    RUN(ping, pong);
    semctl(set, 0, IPC_RMID);
    printf("%ld\n", ball);
    return 0;
}
