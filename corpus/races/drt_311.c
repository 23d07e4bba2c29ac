/* 311: the same trap with two variables: a helper thread that touches neither of them, but takes both mutexes in turn, hides the race between the other two. */
#include "corpus.h"

MUTEX(m1);
MUTEX(m2);
static int x, y;

static void writer(void) {
    LOCK(m1);
    x = 1; // RACE:x:A
    y = 1; // RACE:y:A
    UNLOCK(m1);
}

static void helper(void) {
    turn(1);
    LOCK(m1);
    UNLOCK(m1);
    LOCK(m2);
    UNLOCK(m2);
}

static void reader(void) {
    turn(2);
    LOCK(m2);
    use(x); // RACE:x:B
    use(y); // RACE:y:B
    UNLOCK(m2);
}

int main(void) {
    RUN(writer, helper, reader);
    printf("%d %d\n", x, y);
    return 0;
}
