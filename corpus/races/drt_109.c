/* 109: an array of cells, each set before its thread is created, changed by the thread, and again after its join. Clean. */
#include "corpus.h"

enum { N = 4 };
static int cell[N];

static void *worker(void *argument) {
    turn(1);
    (*(int *)argument)++;
    return NULL;
}

int main(void) {
    pthread_t threads[N];
    for (int i = 0; i < N; i++) {
        cell[i] = 1;
        threads[i] = start_with(worker, &cell[i]);
    }
    int sum = 0;
    for (int i = 0; i < N; i++) {
        finish(threads[i]);
        cell[i]++;
        sum += cell[i];
    }
    printf("%d\n", sum);
    return 0;
}
