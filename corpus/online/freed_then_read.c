/* A block is read after it was released, by a thread that knows of the release. Correct: before. */
#include "corpus.h"
#include <stdlib.h>
static int *volatile block;

static void reader(void) {
    use(*block); // UAF:block:B
}

static void nothing(void) {}

int main(void) {
    /* Tools may look at a program from its first thread on. */
    finish(start(nothing));
    MUST((block = malloc(64)));
    *block = 1;
#ifdef WRONG
    free((int *)block); // UAF:block:A
    finish(start(reader));
#else
    finish(start(reader));
    free((int *)block);
#endif
    return 0;
}
