/* A counter under a lock of a file that each thread has opened for itself: flock belongs to the open file. Correct. */
#include "corpus.h"
#include <fcntl.h>
#include <sys/file.h>

static char path[64];
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long counter;

static void worker(void) {
    int file = open(path, O_RDWR);
    MUST(file >= 0);
    for (int i = 0; i < 50; i++) {
        MUST(!flock(file, LOCK_EX));
        counter++;
        MUST(!flock(file, LOCK_UN));
    }
    close(file);
}

int main(void) {
    snprintf(path, sizeof path, "/tmp/raddle-corpus-flock_lock-%d", (int)getpid());
    int file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    MUST(file >= 0);
    RUN(worker, worker);
    close(file);
    unlink(path);
    printf("%ld\n", counter);
    return 0;
}
