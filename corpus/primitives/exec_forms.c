/* A program that replaces itself by every form of exec in turn, long and short lists of arguments, and once in vain. Clean. */
#define _GNU_SOURCE
#include "corpus.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static int data;
static void worker(void) { data++; }

int main(int argc, char **argv) {
    int form = argc > 1 ? atoi(argv[1]) : 0;
    char *me = "/proc/self/exe", *next = NULL, *environment[] = {"FORM=9", NULL};
    char number[8];
    RUN(worker);
    snprintf(number, sizeof number, "%d", form + 1);
    next = number;
    char *list[] = {argv[0], next, "x", NULL};
    printf("form %d, %d arguments, last %s, environment %s\n", form, argc, argc > 2 ? argv[argc - 1] : "none",
           getenv("FORM") ? getenv("FORM") : "as it was");
    fflush(stdout);
    switch (form) {
    case 0: execl("/nonexistent/program", argv[0], next, (char *)NULL); printf("no such file: %d\n", errno == ENOENT); fflush(stdout);
            execl(me, argv[0], next, (char *)NULL); break;
    case 1: execl(me, argv[0], next, "a", "b", "c", "d", "e", "f", "g", "last", (char *)NULL); break;
    case 2: execlp(me, argv[0], next, "a", "b", "c", "d", "e", (char *)NULL); break;
    case 3: execle(me, argv[0], next, "p", "q", "r", "s", "t", (char *)NULL, environment); break;
    case 4: execv(me, list); break;
    case 5: execvp(me, list); break;
    case 6: execvpe(me, list, environment); break;
    case 7: execve(me, list, environment); break;
    case 8: fexecve(open(me, O_RDONLY | O_CLOEXEC), list, environment); break;
    case 9: return 7;
    }
    return 1;
}
