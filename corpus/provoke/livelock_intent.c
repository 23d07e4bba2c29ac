/* Livelock by intent flags: each of two threads raises its flag and waits until the other's is down; from one order of their steps both
 * wait. FIXED: one of them takes its flag back and lets the other go first. */
#include <corpus.h>
#include <stdatomic.h>

static atomic_int wants[2];

static void enter(int me) {
    atomic_store(&wants[me], 1);
    while (atomic_load(&wants[!me])) {
#ifdef FIXED
        if (me) {
            atomic_store(&wants[me], 0);
            while (atomic_load(&wants[!me])) { }
            atomic_store(&wants[me], 1);
        }
#endif
    }
    atomic_store(&wants[me], 0);
}

static void first(void) { enter(0); }
static void second(void) { turn(2); enter(1); }

int main(void) {
    RUN(first, second);
    puts("1");
    return 0;
}
