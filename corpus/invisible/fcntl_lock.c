/* A counter under an open file description lock of fcntl. Correct: such locks belong to the open file, not to the process. */
#include "corpus.h"
#include <fcntl.h>

static int lock_file(int file, short kind) {
    struct flock range = {.l_type = kind, .l_whence = SEEK_SET};
    return fcntl(file, F_OFD_SETLKW, &range);
}

static char path[64];
/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long counter;

static void worker(void) {
    int file = open(path, O_RDWR);
    MUST(file >= 0);
    for (int i = 0; i < 50; i++) {
        MUST(!lock_file(file, F_WRLCK));
        counter++;
        MUST(!lock_file(file, F_UNLCK));
    }
    close(file);
}

int main(void) {
    snprintf(path, sizeof path, "/tmp/raddle-corpus-fcntl_lock-%d", (int)getpid());
    int file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    MUST(file >= 0);
    RUN(worker, worker);
    close(file);
    unlink(path);
    printf("%ld\n", counter);
    return 0;
}
