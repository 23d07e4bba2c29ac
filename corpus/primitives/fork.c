/* fork with atfork handlers while another thread exists; the child writes, the parent waits and sees its own copy. Clean: parent and child share no memory. */
#include "corpus.h"
#include <semaphore.h>
#include <sys/wait.h>

static sem_t stop;
static int data = 1, prepared, in_parent;

static void before(void) { prepared++; }
static void parent(void) { in_parent++; }
static void child(void) { data += 10; }

static void bystander(void) { sem_wait(&stop); }

int main(void) {
    sem_init(&stop, 0, 0);
    pthread_atfork(before, parent, child);
    pthread_t thread = start(bystander);
    pid_t pid = fork();
    if (pid == 0) {
        data += 100;
        _exit(data == 111 ? 7 : 8);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    sem_post(&stop);
    finish(thread);
    printf("%d %d %d %d\n", WEXITSTATUS(status), data, prepared, in_parent);
    return 0;
}
