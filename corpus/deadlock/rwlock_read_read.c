/* Two read-write locks taken for reading in opposite orders, and no writer anywhere: readers do not exclude each other, no deadlock. */
#include "corpus.h"

static pthread_rwlock_t a = PTHREAD_RWLOCK_INITIALIZER, b = PTHREAD_RWLOCK_INITIALIZER;
static int x = 7;

static void t1(void) {
    pthread_rwlock_rdlock(&a);
    pthread_rwlock_rdlock(&b);
    use(x);
    pthread_rwlock_unlock(&b);
    pthread_rwlock_unlock(&a);
}

static void t2(void) {
    turn(1);
    pthread_rwlock_rdlock(&b);
    pthread_rwlock_rdlock(&a);
    use(x);
    pthread_rwlock_unlock(&a);
    pthread_rwlock_unlock(&b);
}

int main(void) {
    RUN(t1, t2);
    printf("%d\n", x);
    return 0;
}
