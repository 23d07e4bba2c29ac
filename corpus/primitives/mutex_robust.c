/* A robust mutex whose owner ends without unlocking: the next owner gets EOWNERDEAD and repairs it; unrepaired, it becomes unusable.
 * The joins make sure that the owners are dead before main asks. */
#include "corpus.h"

static pthread_mutex_t m;
static int half_done;

static void dies_holding(void) {
    pthread_mutex_lock(&m);
    half_done++;
}

int main(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&m, &attributes);
    finish(start(dies_holding));
    int first = pthread_mutex_lock(&m);
    int repaired = pthread_mutex_consistent(&m);
    UNLOCK(m);
    finish(start(dies_holding));
    int second = pthread_mutex_lock(&m);
    UNLOCK(m);
    int third = pthread_mutex_lock(&m);
    printf("%d %d %d %d %d\n", first == EOWNERDEAD, repaired, second == EOWNERDEAD, third == ENOTRECOVERABLE, half_done);
    return 0;
}
