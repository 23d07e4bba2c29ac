/* fork while another thread keeps taking locks and allocating: the child must be able to allocate, print, start threads and exit.
 * The mutex that the child uses is protected by atfork handlers, as it should be. */
#include "corpus.h"
#include <stdatomic.h>
#include <sys/wait.h>

MUTEX(m);
static atomic_int stop;
static int counter;

static void prepare(void) { LOCK(m); }
static void release(void) { UNLOCK(m); }

static void busy(void) {
    while (!atomic_load(&stop)) {
        LOCK(m);
        counter++;
        free(malloc(100));
        UNLOCK(m);
    }
}

static void grandchild(void) {
    LOCK(m);
    counter = -1;
    UNLOCK(m);
}

int main(void) {
    pthread_atfork(prepare, release, release);
    pthread_t thread = start(busy);
    int good = 0;
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            free(malloc(1000));
            RUN(grandchild);
            _exit(counter == -1 ? 10 + i : 1);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 10 + i;
    }
    atomic_store(&stop, 1);
    finish(thread);
    printf("%d\n", good);
    return 0;
}
