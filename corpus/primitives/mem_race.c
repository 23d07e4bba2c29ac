/* Two unsynchronised memcpy calls into the same buffer race although no instruction of the program itself stores there.
 * The length is not a constant, so both compilers call the library. */
#include "corpus.h"
#include <string.h>

static char buffer[32];
static volatile size_t length = 16;

static void first(void) {
    memcpy(buffer, "aaaaaaaaaaaaaaaa", length); // RACE:buffer:A
}

static void second(void) {
    turn(1);
    memcpy(buffer, "bbbbbbbbbbbbbbbb", length); // RACE:buffer:B
}

int main(void) {
    RUN(first, second);
    printf("%s\n", buffer);
    return 0;
}
