/* 154: a long run with very many races, all between the same two places (in fact the same line): one finding. */
#include "corpus.h"

enum { SIZE = 100, ROUNDS = 20 };
static int array[SIZE];

static void *worker(void *order) {
    turn((int)(long)order);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < SIZE; i++)
            array[i]++; // RACE:array:A
    return NULL;
}

int main(void) {
    pthread_t a = start_with(worker, (void *)0), b = start_with(worker, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", array[0] + array[SIZE - 1]);
    return 0;
}
