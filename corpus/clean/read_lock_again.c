/* Readers take the same read-write lock twice, and read between the two releases. Clean: a read lock is given back as often as it was
   taken, and holds until the last time. */
#include "corpus.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int value;

static void reader(void) {
    int seen;
    pthread_rwlock_rdlock(&lock);
    pthread_rwlock_tryrdlock(&lock);
    seen = value;
    pthread_rwlock_unlock(&lock);
    seen += value;
    pthread_rwlock_unlock(&lock);
    (void)seen;
}

static void writer(void) {
    pthread_rwlock_wrlock(&lock);
    value++;
    pthread_rwlock_unlock(&lock);
}

int main(void) {
    pthread_t t[3];
    t[0] = start(reader);
    t[1] = start(writer);
    t[2] = start(reader);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    printf("%d\n", value);
    return 0;
}
