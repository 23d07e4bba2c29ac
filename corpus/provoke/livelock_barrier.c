/* Livelock: a barrier of a counter that is set back by whoever comes out first; a thread that has not seen it full by then waits for
 * ever. FIXED: it is never set back. */
#include <corpus.h>
#include <stdatomic.h>

static atomic_int inside;

static void meet(void) {
    atomic_fetch_add(&inside, 1);
    while (atomic_load(&inside) < 2) { }
}

static void first(void) { meet(); }

static void second(void) {
    meet();
    turn(2);
#ifndef FIXED
    atomic_store(&inside, 0);
#endif
}

int main(void) {
    RUN(first, second);
    puts("1");
    return 0;
}
