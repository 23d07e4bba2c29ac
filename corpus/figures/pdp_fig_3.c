/* The branches of the property-driven pruning paper's figure 3, run by two threads with different conditions: x is protected by A in one branch and by C in the other,
 * y by nothing but the surrounding B. All runs hold B, so nothing races inside; the reader of y outside does. */
#include "corpus.h"

MUTEX(A);
MUTEX(B);
MUTEX(C);
static int x, y, z;

static void step(int c) {
    LOCK(B);
    if (c) {
        LOCK(A);
        x++;
        UNLOCK(A);
        y = 5; // RACE:y:A
        LOCK(C);
    } else {
        LOCK(C);
        x++;
    }
    z++;
    UNLOCK(C);
    UNLOCK(B);
}

static void thread_1(void) { step(1); }
static void thread_2(void) { step(0); }
static void reader(void) {
    turn(1);
    use(y); // RACE:y:B
}

int main(void) {
    RUN(thread_1, thread_2, reader);
    printf("%d %d %d\n", x, y, z);
    return 0;
}
