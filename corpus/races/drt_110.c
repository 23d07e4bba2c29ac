/* 110: simple races on a file-scope static, a function-scope static, a heap block and a stack variable, each through its own function. */
#include "corpus.h"

static int file_static;
static int *heap, *stack;

static int *function_static(void) {
    static int hidden;
    return &hidden;
}

static void *worker(void *order) {
    turn((int)(long)order);
    file_static++;          // RACE:file_static:A
    (*function_static())++; // RACE:function_static:A
    (*heap)++;              // RACE:heap:A
    (*stack)++;             // RACE:stack:A
    return NULL;
}

int main(void) {
    int on_stack = 0;
    stack = &on_stack;
    heap = calloc(1, sizeof *heap);
    pthread_t a = start_with(worker, (void *)0), b = start_with(worker, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", file_static + *function_static() + *heap + on_stack);
    free(heap);
    return 0;
}
