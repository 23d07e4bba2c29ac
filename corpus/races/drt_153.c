/* 153: parent and child process write the same address after a fork. Clean: they have different memory. */
#include "corpus.h"
#include <sys/wait.h>

static int x;

static void worker(void) { x++; }

int main(void) {
    finish(start(worker));
    pid_t pid = fork();
    if (pid == 0) {
        x += 10;
        _exit(x);
    }
    x += 100;
    int status = 0;
    waitpid(pid, &status, 0);
    printf("%d %d\n", x, WEXITSTATUS(status));
    return 0;
}
