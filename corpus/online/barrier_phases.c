/* A barrier orders what was done before it and what is done behind it, and no more: what an early leaver does behind it and what a late one
   does are unordered, although the early one enters the next phase before the late one. Wrong: both touch the same variable between the phases. */
#include "corpus.h"

static pthread_barrier_t phase;
static int first[2], shared;

static void part(int me) {
    first[me] = me;
    pthread_barrier_wait(&phase);
    use(first[!me]);
#ifdef WRONG
    if (me) turn(1);
    shared += me + 1; // RACE:shared:A
#else
    if (me) shared += 2;
#endif
    pthread_barrier_wait(&phase);
    use(shared);
}

static void early(void) { part(0); }
static void late(void) { part(1); }

int main(void) {
    pthread_barrier_init(&phase, NULL, 2);
    RUN(early, late);
    pthread_barrier_destroy(&phase);
    return 0;
}
