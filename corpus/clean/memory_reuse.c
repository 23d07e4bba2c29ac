/* Blocks of one size are allocated, written and freed by two threads at once: the allocator gives the same memory to one after the other. Clean: a new block has no past. */
#include "corpus.h"

static int sums[2];

static void *worker(void *argument) {
    int *sum = argument;
    for (int i = 0; i < 200; i++) {
        int *block = malloc(16 * sizeof *block);
        for (int k = 0; k < 16; k++) block[k] = i;
        *sum += block[i % 16];
        free(block);
    }
    return NULL;
}

int main(void) {
    pthread_t a = start_with(worker, &sums[0]), b = start_with(worker, &sums[1]);
    finish(a);
    finish(b);
    printf("%d %d\n", sums[0], sums[1]);
    return 0;
}
