/* Causally-precedes, figure 7: a read-write lock hides the race. Writer's section, then reader's section, the accesses to x outside both. */
#include "corpus.h"

static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static int x, y;

static void t1(void) {
    x = 1; // RACE:x:A
    pthread_rwlock_wrlock(&l);
    y = 1;
    pthread_rwlock_unlock(&l);
}

static void t2(void) {
    turn(1);
    pthread_rwlock_rdlock(&l);
    use(y);
    pthread_rwlock_unlock(&l);
    use(x); // RACE:x:B
}

int main(void) {
    RUN(t1, t2);
    printf("%d %d\n", x, y);
    return 0;
}
