/* Livelock: two threads take turns; one that sees the work done leaves without handing the turn over. In the recorded run it is not done yet
 * when it looks. FIXED: the turn is handed over in any case. */
#include <corpus.h>
#include <stdatomic.h>

static atomic_int next, done;

static void first(void) {
    while (atomic_load(&next) != 0) { }
#ifndef FIXED
    if (atomic_load(&done)) return;
#endif
    atomic_store(&next, 1);
}

static void second(void) {
    while (atomic_load(&next) != 1) { }
    atomic_store(&next, 0);
}

static void finisher(void) {
    turn(2);
    atomic_store(&done, 1);
}

int main(void) {
    RUN(first, second, finisher);
    puts("1");
    return 0;
}
