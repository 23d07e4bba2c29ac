/* The running example of the property-driven pruning paper (its figure 1): thread 2 skips the lock around y if it saw x as zero.
 * In the observed order it sees one and y is protected on both sides. The race needs thread 2's first critical section before thread 1's, a path
 * that the recorded run did not take: only exploration can find it. */
#include "corpus.h"

MUTEX(f1);
MUTEX(f2);
static int x, y, z;

static void thread_1(void) {
    LOCK(f1);
    x++;
    UNLOCK(f1);
    LOCK(f1);
    y = 1; // RACE:y:A
    UNLOCK(f1);
    LOCK(f2);
    z++;
    UNLOCK(f2);
}

static void thread_2(void) {
    turn(1);
    LOCK(f1);
    LOCK(f2);
    z++;
    int c = x;
    UNLOCK(f2);
    UNLOCK(f1);
    if (c > 0) {
        LOCK(f1);
        y++;
        UNLOCK(f1);
    } else {
        y++; // RACE:y:B
    }
}

int main(void) {
    RUN(thread_1, thread_2);
    printf("%d %d %d\n", x, y, z);
    return 0;
}
