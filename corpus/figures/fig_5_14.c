/* Figures 5.13 and 5.14: three locations for the hybrid filter. b is always protected, c is ordered by the join, a is neither: only a can race,
 * and in this order only prediction sees it. */
#include "corpus.h"

MUTEX(m);
static int a, b, c;

static void thread_2(void) {
    turn(1);
    LOCK(m);
    b = 2;
    UNLOCK(m);
    c = 2;
    a = 2; // RACE:a:B
}

int main(void) {
    pthread_t thread = start(thread_2);
    a = 1; // RACE:a:A
    LOCK(m);
    b = 1;
    UNLOCK(m);
    finish(thread);
    c = 1;
    printf("%d %d %d\n", a, b, c);
    return 0;
}
