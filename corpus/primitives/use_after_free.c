/* One thread frees a block that another reads, without order. What was read is not shown: the order decides what it is. */
#include "corpus.h"

static int *block;
static int seen;

static void reader(void) {
    seen = block[3]; // RACE:block:A
}

static void freer(void) {
    turn(1);
    free(block); // RACE:block:B
}

int main(void) {
    block = malloc(8 * sizeof *block);
    block[3] = 9;
    RUN(reader, freer);
    use(seen);
    return 0;
}
