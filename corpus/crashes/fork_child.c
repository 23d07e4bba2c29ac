/* Forked children crash, one from main and one from a thread. The parent sees the signal and goes on; the crash is not the parent's. */
#include "corpus.h"
#include <signal.h>
#include <sys/wait.h>

static int *volatile nowhere;

static int child(void) {
    pid_t process = fork();
    if (process == 0) {
        *nowhere = 1;
        _exit(0);
    }
    int status = 0;
    waitpid(process, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void *worker(void *argument) {
    *(int *)argument = child();
    return NULL;
}

int main(void) {
    int other = 0;
    pthread_join(start_with(worker, &other), NULL);
    printf("%d %d\n", child(), other);
    return 0;
}
