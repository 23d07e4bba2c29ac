/* Every way to wait for a child, while another thread goes on taking a lock. What the children say comes by their statuses. */
#include "corpus.h"
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

MUTEX(m);
static atomic_int stop;
static int counter;

static void busy(void) {
    while (!atomic_load(&stop)) {
        LOCK(m);
        counter++;
        UNLOCK(m);
    }
}

/* A child that computes for a while and ends with this status. */
static pid_t child(int status) {
    pid_t pid = fork();
    if (pid == 0) {
        volatile unsigned x = 0;
        for (unsigned i = 0; i < 1000000; i++)
            x += i;
        _exit(status);
    }
    return pid;
}

static int said(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

int main(void) {
    pthread_t thread = start(busy);
    struct rusage usage;
    siginfo_t info = {0};
    int status = 0, right = 0;

    pid_t pid = child(1);
    right += wait(&status) == pid && said(status) == 1;
    pid = child(2);
    right += waitpid(pid, &status, 0) == pid && said(status) == 2;
    pid = child(3);
    right += wait3(&status, 0, &usage) == pid && said(status) == 3;
    pid = child(4);
    right += wait4(pid, &status, 0, &usage) == pid && said(status) == 4;
    pid = child(5);
    right += waitid(P_PID, (id_t)pid, &info, WEXITED) == 0 && info.si_pid == pid && info.si_status == 5;
    pid = child(6);
    right += waitid(P_ALL, 0, &info, WEXITED) == 0 && info.si_pid == pid && info.si_status == 6;
    right += waitpid(-1, &status, WNOHANG) == -1;

    atomic_store(&stop, 1);
    finish(thread);
    printf("%d\n", right);
    return 0;
}
