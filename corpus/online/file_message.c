/* A thread writes to a file what another one reads from it, which then takes the message. Correct: what is read was written before. Wrong: the reader does not read the file. */
#include "corpus.h"
#include <stdlib.h>
static int file, message;

static void writer(void) {
    message = 1; // RACE:message:A
    MUST(pwrite(file, "x", 1, 0) == 1);
}

static void reader(void) {
    char byte = 0;
    turn(1);
#ifndef WRONG
    while (pread(file, &byte, 1, 0) != 1) continue;
#endif
    use(message + byte); // RACE:message:B
}

int main(void) {
    char name[] = "/tmp/raddle-XXXXXX";
    MUST((file = mkstemp(name)) >= 0 && !unlink(name));
    RUN(writer, reader);
    close(file);
    return 0;
}
