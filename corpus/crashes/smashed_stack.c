/* A thread writes behind an array on its stack; the compiler's check at the end of the function finds it, and the C library says so and aborts.
 * The function has told its end by then, so the place is its caller's. */
#include "corpus.h"

static volatile int length = 24;

__attribute__((noinline)) static void fill(void) {
    volatile char room[8];
    for (int i = 0; i < length; i++) room[i] = 'x';
    use(room[0]);
}

static void worker(void) {
    fill(); // CRASH
    use(0);
}

int main(void) {
    RUN(worker);
    return 0;
}
