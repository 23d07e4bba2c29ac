/* Figures 5.2 and 5.3: y is protected, x is not. In interleaving (a) the mutex hides the race on x from happens-before, in (b) it does not.
 * WORKER_FIRST chooses (b). Prediction finds the race from either. */
#include "corpus.h"

#ifdef WORKER_FIRST
enum { MAIN_TURN = 1, WORKER_TURN = 0 };
#else
enum { MAIN_TURN = 0, WORKER_TURN = 1 };
#endif

MUTEX(m);
static int x, y;

static void worker(void) {
    turn(WORKER_TURN);
    LOCK(m);
    y++;
    UNLOCK(m);
    x++; // RACE:x:B
}

int main(void) {
    pthread_t thread = start(worker);
    turn(MAIN_TURN);
    x++; // RACE:x:A
    LOCK(m);
    y++;
    UNLOCK(m);
    finish(thread);
    printf("%d %d\n", x, y);
    return 0;
}
