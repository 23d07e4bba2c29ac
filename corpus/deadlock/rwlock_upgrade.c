/* Two readers of different read-write locks that then want to write the other's: each write lock waits for the other thread's read lock. */
#include "corpus.h"

static pthread_rwlock_t a = PTHREAD_RWLOCK_INITIALIZER, b = PTHREAD_RWLOCK_INITIALIZER;
static int x;

static void t1(void) {
    pthread_rwlock_rdlock(&a);
    pthread_rwlock_wrlock(&b); // DEADLOCK:1
    x += 1;
    pthread_rwlock_unlock(&b);
    pthread_rwlock_unlock(&a);
}

static void t2(void) {
    turn(1);
    pthread_rwlock_rdlock(&b);
    pthread_rwlock_wrlock(&a); // DEADLOCK:2
    pthread_rwlock_unlock(&a);
    pthread_rwlock_unlock(&b);
}

int main(void) {
    RUN(t1, t2);
    printf("%d\n", x);
    return 0;
}
