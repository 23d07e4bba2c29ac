/* A read-write lock: two readers inside together (a barrier inside the read side proves it), writers alone.
 * Clean: reads hold the lock at least in read mode, writes in write mode. */
#include "corpus.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t both_inside;
static int value;

static void reader(void) {
    pthread_rwlock_rdlock(&lock);
    pthread_barrier_wait(&both_inside);
    use(value);
    pthread_rwlock_unlock(&lock);
}

static void writer(void) {
    for (int i = 0; i < 10; i++) {
        pthread_rwlock_wrlock(&lock);
        value++;
        pthread_rwlock_unlock(&lock);
    }
}

int main(void) {
    pthread_barrier_init(&both_inside, NULL, 2);
    RUN(reader, reader);
    RUN(writer, writer);
    pthread_rwlock_destroy(&lock);
    printf("%d\n", value);
    return 0;
}
