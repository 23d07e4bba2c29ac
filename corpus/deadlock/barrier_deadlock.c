/* barrier-deadlock: one thread waits at the barrier while it holds the mutex that the other needs to get there. Harmless when the other's critical section comes first. */
#include "corpus.h"

static pthread_barrier_t b;
MUTEX(m);
static int sum;

static void t1(void) {
    LOCK(m); // DEADLOCK:1
    sum += 1;
    UNLOCK(m);
    pthread_barrier_wait(&b);
}

static void t2(void) {
    turn(1);
    LOCK(m);
    sum += 2;
    pthread_barrier_wait(&b); // DEADLOCK:2
    UNLOCK(m);
}

int main(void) {
    pthread_barrier_init(&b, NULL, 2);
    RUN(t1, t2);
    printf("%d\n", sum);
    return 0;
}
