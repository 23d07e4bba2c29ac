/* Figure 2.10: k is written before the fork and in the child (ordered), m in the child and in the parent after the fork (not ordered). */
#include "corpus.h"

static int k, m;

static void thread_2(void) {
    k = 2;
    m = 2; // RACE:m:A
}

int main(void) {
    k = 1;
    pthread_t thread = start(thread_2);
    turn(1);
    m = 1; // RACE:m:B
    finish(thread);
    printf("%d %d\n", k, m);
    return 0;
}
