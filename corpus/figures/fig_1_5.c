/* Figure 1.5: x is not protected, but in this order the mutex that protects y orders the two writes of x as well.
 * Happens-before is silent; the critical sections can change places, so the race is real and prediction must find it. */
#include "corpus.h"

MUTEX(m);
static int x, y;

static void thread_1(void) {
    x = 1; // RACE:x:A
    LOCK(m);
    y = y + 2;
    UNLOCK(m);
}

static void thread_2(void) {
    turn(1);
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
