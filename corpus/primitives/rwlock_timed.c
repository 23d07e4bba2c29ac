/* timedrdlock and timedwrlock (real-time clock) and their clock variants (monotonic): time-outs under a writer, success on a free lock. */
#include "corpus.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int results[4];

static void attempts(int ms) {
    struct timespec t = deadline(CLOCK_REALTIME, ms);
    if ((results[0] = pthread_rwlock_timedrdlock(&lock, &t)) == 0) pthread_rwlock_unlock(&lock);
    t = deadline(CLOCK_REALTIME, ms);
    if ((results[1] = pthread_rwlock_timedwrlock(&lock, &t)) == 0) pthread_rwlock_unlock(&lock);
    t = deadline(CLOCK_MONOTONIC, ms);
    if ((results[2] = pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &t)) == 0) pthread_rwlock_unlock(&lock);
    t = deadline(CLOCK_MONOTONIC, ms);
    if ((results[3] = pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &t)) == 0) pthread_rwlock_unlock(&lock);
}

static void impatient(void) { attempts(4); }
static void patient(void) { attempts(1500); }

static void show(void) {
    for (int i = 0; i < 4; i++) printf("%s ", results[i] == ETIMEDOUT ? "timeout" : results[i] == 0 ? "ok" : "error");
    printf("\n");
}

int main(void) {
    pthread_rwlock_wrlock(&lock);
    finish(start(impatient));
    pthread_rwlock_unlock(&lock);
    show();
    finish(start(patient));
    show();
    return 0;
}
