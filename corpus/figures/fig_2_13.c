/* Figure 2.13: two threads protect x by different mutexes. The lockset becomes empty, and happens-before finds no edge either. */
#include "corpus.h"

MUTEX(m);
MUTEX(n);
static int x;

static void thread_1(void) {
    LOCK(m);
    x++; // RACE:x:A
    UNLOCK(m);
}

static void thread_2(void) {
    turn(1);
    LOCK(n);
    x++; // RACE:x:B
    UNLOCK(n);
}

int main(void) {
    RUN(thread_1, thread_2);
    printf("%d\n", x);
    return 0;
}
