/* 89: the same simple race on five kinds of memory: a global, a stack variable, and members of a global, a stack and a heap structure. All five are due. */
#include "corpus.h"

struct triple {
    int a, b, c;
};

static int global;
static int *stack;
static struct triple global_struct, *stack_struct, *heap_struct;

static void *worker(void *order) {
    turn((int)(long)order);
    global = 1;          // RACE:global:A
    *stack = 1;          // RACE:stack:A
    global_struct.b = 1; // RACE:global_member:A
    stack_struct->b = 1; // RACE:stack_member:A
    heap_struct->b = 1;  // RACE:heap_member:A
    return NULL;
}

int main(void) {
    int on_stack = 0;
    struct triple triple_on_stack = {0, 0, 0};
    stack = &on_stack;
    stack_struct = &triple_on_stack;
    heap_struct = calloc(1, sizeof *heap_struct);
    pthread_t a = start_with(worker, (void *)0), b = start_with(worker, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", global + on_stack + global_struct.b + triple_on_stack.b + heap_struct->b);
    free(heap_struct);
    return 0;
}
