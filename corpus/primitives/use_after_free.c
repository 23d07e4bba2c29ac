/* One thread frees a block that another reads, without order. Timed so that the read comes first and nothing breaks. */
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
    printf("%d\n", seen);
    return 0;
}
