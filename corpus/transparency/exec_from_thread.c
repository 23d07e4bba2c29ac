/* exec from a thread that is not main, while main waits: all threads vanish, the new image runs and sets the status. */
#include "corpus.h"
#include <string.h>

static char **arguments;

static void replaces(void) {
    execl("/proc/self/exe", arguments[0], "second", (char *)NULL);
}

int main(int argc, char **argv) {
    arguments = argv;
    if (argc > 1 && strcmp(argv[1], "second") == 0) {
        printf("new image\n");
        return 0;
    }
    RUN(replaces);
    printf("never printed\n");
    return 1;
}
