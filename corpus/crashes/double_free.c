/* The C library finds a block that is freed twice and aborts: what it says is in the report. */
#include "corpus.h"

static void *volatile block;

static void worker(void) {
    block = malloc(5000);
    free(block);
    free(block); // CRASH
}

int main(void) {
    /* Behind the block something stays allocated, so that the first release does not give the memory back. */
    use((long)malloc(10));
    worker();
    return 0;
}
