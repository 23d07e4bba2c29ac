/* Figure 5.16: a and b are accessed in exactly the same thread segments, c in others. One check settles a and b together, c needs its own; all three race.
 * In this order main's unlock comes before thread 2's lock, which hides a and b from happens-before but not c. */
#include "corpus.h"

MUTEX(m);
static int a, b, c;

static void thread_2(void) {
    turn(1);
    LOCK(m);
    a = 2; // RACE:a:B
    b = 2; // RACE:b:B
    c = 2; // RACE:c:B
    UNLOCK(m);
}

int main(void) {
    pthread_t thread = start(thread_2);
    a = 1; // RACE:a:A
    b = 1; // RACE:b:A
    LOCK(m);
    UNLOCK(m);
    turn(2);
    c = 1; // RACE:c:A
    finish(thread);
    printf("%d %d %d\n", a, b, c);
    return 0;
}
