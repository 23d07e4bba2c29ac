/* RWLockVsRWLock: read locks do not exclude each other, so a read unlock does not happen before another thread's read lock. The writes around them race. */
#include "corpus.h"

static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static int x;

static void first(void) {
    x = 1; // RACE:x:A
    pthread_rwlock_rdlock(&l);
    pthread_rwlock_unlock(&l);
}

static void second(void) {
    turn(1);
    pthread_rwlock_rdlock(&l);
    pthread_rwlock_unlock(&l);
    x = 2; // RACE:x:B
}

int main(void) {
    RUN(first, second);
    printf("%d\n", x);
    return 0;
}
