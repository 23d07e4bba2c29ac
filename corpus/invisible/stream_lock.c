/* A counter under the lock that every stream has, taken by flockfile. Correct: the lock is held across the change. */
#include "corpus.h"

/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
long counter;

static void worker(void) {
    for (int i = 0; i < 100; i++) {
        flockfile(stderr);
        counter++;
        funlockfile(stderr);
    }
}

int main(void) {
    RUN(worker, worker);
    printf("%ld\n", counter);
    return 0;
}
