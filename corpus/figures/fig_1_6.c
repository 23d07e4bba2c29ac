/* Figure 1.6: the program of figure 1.5 in the other order. Nothing orders the writes of x, so happens-before sees the race. */
#include "corpus.h"

MUTEX(m);
static int x, y;

static void thread_1(void) {
    turn(1);
    x = 1; // RACE:x:A
    LOCK(m);
    y = y + 2;
    UNLOCK(m);
}

static void thread_2(void) {
    LOCK(m);
    y = y + 1;
    UNLOCK(m);
    x = 2; // RACE:x:B
}

int main(void) {
    RUN(thread_1, thread_2);
    printf("%d %d\n", x, y);
    return 0;
}
