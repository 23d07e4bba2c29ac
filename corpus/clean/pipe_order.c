/* Two threads ordered by a pipe: the read returns only after the write. The order is real and the kernel's; tools that know descriptors see it. */
#include "corpus.h"

static int ends[2], data;

static void sender(void) {
    data = 1;
    MUST(write(ends[1], "x", 1) == 1);
}

static void receiver(void) {
    char byte;
    MUST(read(ends[0], &byte, 1) == 1);
    data++;
}

int main(void) {
    MUST(pipe(ends) == 0);
    RUN(receiver, sender);
    printf("%d\n", data);
    return 0;
}
