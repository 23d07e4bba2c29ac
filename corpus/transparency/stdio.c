/* Arguments, standard input and standard error reach the program as they are. */
#include "corpus.h"
#include <string.h>

static char lines[2][32];

static void reader(void) {
    for (int i = 0; i < 2; i++) MUST(fgets(lines[i], sizeof lines[i], stdin));
}

int main(int argc, char **argv) {
    RUN(reader);
    for (int i = 1; i < argc; i++) printf("[%s]", argv[i]);
    printf("\n%s%s", lines[0], lines[1]);
    fprintf(stderr, "to stderr\n");
    printf("%d\n", feof(stdin) ? 1 : getchar() == EOF);
    return 0;
}
