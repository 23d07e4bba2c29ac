/* 119: malloc and free between the accesses order nothing, although the allocator has a lock inside. */
#include "corpus.h"

static int x;
static void *volatile block1, *volatile block2;

static void first(void) {
    x = 1; // RACE:x:A
    block1 = malloc(123);
    free(block1);
}

static void second(void) {
    turn(1);
    block2 = malloc(345);
    free(block2);
    x = 2; // RACE:x:B
}

int main(void) {
    RUN(first, second);
    printf("%d\n", x);
    return 0;
}
