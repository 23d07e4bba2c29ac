/* Figure 2.1: two assignments under one mutex; the final value depends on the order, but there is no race. */
#include "corpus.h"

MUTEX(m);
static int x;

static void thread_1(void) {
    LOCK(m);
    x++;
    UNLOCK(m);
}

static void thread_2(void) {
    turn(1);
    LOCK(m);
    x = 3;
    UNLOCK(m);
}

int main(void) {
    RUN(thread_1, thread_2);
    printf("%d\n", x);
    return 0;
}
