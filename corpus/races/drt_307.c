/* 307: a simple race inside code with branches and calls; only one of the paths touches x. */
#include "corpus.h"

static int x;
static volatile int one = 1;

static void racy(int step) {
    if (step % 2 == one)
        x++; // RACE:x:A
}

static void go(int depth) {
    if (depth > 0)
        go(depth - 1);
    else
        for (int i = 0; i < 3; i++) racy(i);
}

static void *worker(void *order) {
    turn((int)(long)order);
    go(3);
    return NULL;
}

int main(void) {
    pthread_t a = start_with(worker, (void *)0), b = start_with(worker, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", x);
    return 0;
}
