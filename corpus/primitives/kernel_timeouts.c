/* Waits of the kernel that give up, and the same waits when there is something to wait for: semtimedop, sigtimedwait,
 * mq_timedreceive, and a lock of an open file that somebody else has (F_OFD_SETLK). */
#include "corpus.h"
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/sem.h>

static int set, file, other;
static mqd_t queue;
/* Not static: glibc declares some of these calls as leaf functions. */
long handed;

static int lower(int ms) {
    struct sembuf down = {.sem_op = -1};
    struct timespec time = {.tv_nsec = (long)ms * 1000000};
    return semtimedop(set, &down, 1, &time) ? errno : 0;
}

static int take_signal(int ms) {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    struct timespec time = {.tv_nsec = (long)ms * 1000000};
    int number = sigtimedwait(&wanted, NULL, &time);
    return number < 0 ? errno : number;
}

static int receive(int ms) {
    char message[8];
    struct timespec until = deadline(CLOCK_REALTIME, ms);
    return mq_timedreceive(queue, message, sizeof message, NULL, &until) < 0 ? errno : message[0];
}

static int lock(int fd, int type) {
    struct flock range = {.l_type = (short)type, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &range) ? errno : 0;
}

static void gives(void) {
    handed = 5;
    struct sembuf up = {.sem_op = 1};
    semop(set, &up, 1);
    mq_send(queue, "m", 1, 0);
}

int main(void) {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    char name[64], path[] = "/tmp/raddle-corpus-XXXXXX";
    snprintf(name, sizeof name, "/raddle-corpus-%d", (int)getpid());
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 8};
    MUST((set = semget(IPC_PRIVATE, 1, 0600)) >= 0);
    MUST((queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attributes)) != (mqd_t)-1);
    mq_unlink(name);
    MUST((file = mkstemp(path)) >= 0);
    MUST((other = open(path, O_RDWR)) >= 0);
    unlink(path);

    int no_unit = lower(2), no_signal = take_signal(2), no_message = receive(2);
    int mine = lock(file, F_WRLCK), taken = lock(other, F_WRLCK);
    pthread_t giver = start(gives);
    int unit = lower(900);
    long got = unit == 0 ? handed : -1;
    int message = receive(900);
    pthread_kill(pthread_self(), SIGUSR1);
    int number = take_signal(900);
    lock(file, F_UNLCK);
    int free_now = lock(other, F_WRLCK);
    finish(giver);
    semctl(set, 0, IPC_RMID);
    printf("%d %d %d %d %d\n", no_unit == EAGAIN, no_signal == EAGAIN, no_message == ETIMEDOUT, mine, taken == EAGAIN);
    printf("%d %ld %c %d %d\n", unit, got, message, number == SIGUSR1, free_now);
    return 0;
}
