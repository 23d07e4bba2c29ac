/* tiny: two threads, five critical sections each, one mutex. The program for measuring schedules per second; 252 ways to order the critical sections. */
#include "corpus.h"

MUTEX(m);
static int x;

static void worker(void) {
    for (int i = 0; i < 5; i++) {
        LOCK(m);
        x++;
        UNLOCK(m);
    }
}

int main(void) {
    RUN(worker, worker);
    printf("%d\n", x);
    return 0;
}
