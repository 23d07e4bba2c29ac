/* tryrdlock and trywrlock: both fail under a writer; under a reader another reader gets in and a writer does not.
 * Joins make each phase certain. */
#include "corpus.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int read_result, write_result;

static void attempts(void) {
    read_result = pthread_rwlock_tryrdlock(&lock);
    if (read_result == 0) pthread_rwlock_unlock(&lock);
    write_result = pthread_rwlock_trywrlock(&lock);
    if (write_result == 0) pthread_rwlock_unlock(&lock);
}

static void phase(const char *name) {
    finish(start(attempts));
    printf("%s: read %s, write %s\n", name, read_result ? "busy" : "ok", write_result ? "busy" : "ok");
}

int main(void) {
    pthread_rwlock_wrlock(&lock);
    phase("under writer");
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_rdlock(&lock);
    phase("under reader");
    pthread_rwlock_unlock(&lock);
    phase("free");
    return 0;
}
