/* 23: a read-write lock by all four doors: wrlock, trywrlock, rdlock, tryrdlock, each tried until it opens. Clean. */
#include "corpus.h"

static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static int x;

static void try_write(void) {
    for (int i = 0; i < 3; i++) {
        while (pthread_rwlock_trywrlock(&l)) usleep(200);
        x++;
        pthread_rwlock_unlock(&l);
    }
}

static void try_read(void) {
    for (int i = 0; i < 3; i++) {
        while (pthread_rwlock_tryrdlock(&l)) usleep(200);
        use(x);
        pthread_rwlock_unlock(&l);
    }
}

static void write_(void) {
    for (int i = 0; i < 3; i++) {
        pthread_rwlock_wrlock(&l);
        x++;
        pthread_rwlock_unlock(&l);
    }
}

static void read_(void) {
    for (int i = 0; i < 3; i++) {
        pthread_rwlock_rdlock(&l);
        use(x);
        pthread_rwlock_unlock(&l);
    }
}

int main(void) {
    RUN(try_write, try_read, write_, read_);
    printf("%d\n", x);
    return 0;
}
