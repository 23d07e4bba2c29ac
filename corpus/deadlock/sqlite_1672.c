/* sqlite-1672: a recursive mutex built from two plain ones. Entering takes `aux` and, holding it, waits for `main_`; leaving takes `aux` while holding `main_`.
 * A thread inside and a thread that enters deadlock. On the way there the second thread reads owner and depth with values that the recorded run did not have
 * (in it the first thread had left already), but takes the same branch: the schedule is feasible. RaceQuest found but could not reproduce it. */
#include "corpus.h"

MUTEX(aux);
MUTEX(main_);
static int depth;
static pthread_t owner;
static int rows;

static void enter(void) {
    LOCK(aux);
    if (depth == 0 || !pthread_equal(owner, pthread_self())) {
        LOCK(main_); // DEADLOCK:2
        owner = pthread_self();
    }
    depth++;
    UNLOCK(aux);
}

static void leave(void) {
    LOCK(aux); // DEADLOCK:1
    depth--;
    if (depth == 0) UNLOCK(main_);
    UNLOCK(aux);
}

static void first(void) {
    enter();
    rows++;
    leave();
}

static void second(void) {
    turn(1);
    first();
}

int main(void) {
    RUN(first, second);
    printf("%d\n", rows);
    return 0;
}
