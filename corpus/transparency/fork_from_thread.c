/* fork from a thread that is not main; in the child that thread is the only one and returning from it ends the process with status 0.
 * The parent must not notice. */
#include "corpus.h"
#include <sys/wait.h>

static int status = -1;

static void forks(void) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        printf("child\n");
        fflush(stdout);
        return;
    }
    waitpid(pid, &status, 0);
}

int main(void) {
    pthread_t thread = start(forks);
    finish(thread);
    printf("parent saw %d\n", WEXITSTATUS(status));
    return 0;
}
