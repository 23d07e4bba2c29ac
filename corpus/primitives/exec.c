/* A program that replaces itself by exec, after its threads have ended; the second image prints and sets the status.
 * The trace of the first image must be complete up to the exec. */
#include "corpus.h"
#include <string.h>

static int data;
static void worker(void) { data = 3; }

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "first") == 0) {
        RUN(worker);
        printf("before %d\n", data);
        fflush(stdout);
        execl("/proc/self/exe", argv[0], "second", (char *)NULL);
        return 1;
    }
    RUN(worker);
    printf("after %d\n", data);
    return 0;
}
