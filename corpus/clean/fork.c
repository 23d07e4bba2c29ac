/* A process forks while a thread writes; parent and child go on writing the same addresses. Clean: after the fork they share nothing, and before it the mutex orders. */
#include "corpus.h"
#include <sys/wait.h>

MUTEX(m);
static int counter;

static void worker(void) {
    for (int i = 0; i < 100; i++) {
        LOCK(m);
        counter++;
        UNLOCK(m);
    }
}

static void hold(void) { LOCK(m); }
static void let_go(void) { UNLOCK(m); }

int main(void) {
    pthread_atfork(hold, let_go, let_go);
    pthread_t thread = start(worker);
    pid_t pid = fork();
    if (pid == 0) {
        counter = 1000;
        RUN(worker);
        _exit(counter == 1100 ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    finish(thread);
    printf("%d %d\n", counter, WEXITSTATUS(status));
    return 0;
}
