/* 104: simple race, write against write, on heap memory. */
#include "corpus.h"

static int *heap;

static void worker(void) {
    heap[42] = 1; // RACE:heap:A
}

int main(void) {
    heap = malloc(128 * sizeof *heap);
    heap[42] = 0;
    pthread_t thread = start(worker);
    turn(1);
    heap[42] = 2; // RACE:heap:B
    finish(thread);
    printf("%d\n", heap[42]);
    free(heap);
    return 0;
}
