/* 312: a race at the bottom of a deep stack: both stacks are due, all thirty frames of them. */
#include "corpus.h"

static int x;

static void dive(int depth) {
    if (depth == 0) {
        x++; // RACE:x:A
        return;
    }
    dive(depth - 1);
    use(depth); /* not a tail call */
}

static void *worker(void *order) {
    turn((int)(long)order);
    dive(30);
    return NULL;
}

int main(void) {
    pthread_t a = start_with(worker, (void *)0), b = start_with(worker, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", x);
    return 0;
}
