/* A child writes to a shared mapping while a thread of the parent waits for it and then reads; another thread of the parent started the child. Correct: waitpid
 * returns after the child has ended, and the child was started after what its parent wrote. */
#include "corpus.h"
#include <sys/mman.h>
#include <sys/wait.h>

static int *shared;
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
int prepared;
static int child_pipe[2];

static void parent(void) {
    prepared = 20;
    pid_t child = fork();
    if (child == 0) {
        *shared = prepared + 1;
        _exit(0);
    }
    MUST(child > 0 && write(child_pipe[1], &child, sizeof child) == sizeof child);
}

static void waiter(void) {
    pid_t child;
    int status;
    MUST(read(child_pipe[0], &child, sizeof child) == sizeof child);
    MUST(waitpid(child, &status, 0) == child && status == 0);
    printf("%d\n", *shared + prepared + 1);
}

int main(void) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(shared != MAP_FAILED && !pipe(child_pipe));
    RUN(parent, waiter);
    return 0;
}
