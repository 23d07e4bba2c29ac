/* Figures 5.9 and 5.10: worker touches x only if main's critical section came first, and then main's access to x came before it.
 * The reordering that would make the accesses concurrent changes worker's path: no race in any feasible interleaving. */
#include "corpus.h"

MUTEX(m);
static int x, y;

static void worker(void) {
    turn(1);
    int flag;
    LOCK(m);
    y++;
    flag = y;
    UNLOCK(m);
    if (flag > 1) x++;
}

int main(void) {
    pthread_t thread = start(worker);
    x++;
    LOCK(m);
    y++;
    UNLOCK(m);
    finish(thread);
    printf("%d %d\n", x, y);
    return 0;
}
