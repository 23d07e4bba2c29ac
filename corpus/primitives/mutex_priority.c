/* Mutexes with a priority protocol: inheritance (a lock that is waited for, a recursive one, a robust one whose owner ends) and a
 * ceiling, which threads without real-time priority can set and ask for. */
#include "corpus.h"

static pthread_mutex_t plain, again, robust, ceiling;
static int shared, failed;

static void init(pthread_mutex_t *mutex, int protocol, int kind, int robustness) {
    pthread_mutexattr_t attributes;
    MUST(!pthread_mutexattr_init(&attributes));
    MUST(!pthread_mutexattr_setprotocol(&attributes, protocol));
    MUST(!pthread_mutexattr_settype(&attributes, kind));
    MUST(!pthread_mutexattr_setrobust(&attributes, robustness));
    MUST(!pthread_mutex_init(mutex, &attributes));
    MUST(!pthread_mutexattr_destroy(&attributes));
}

static void adds(void) {
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&plain);
        shared++;
        pthread_mutex_unlock(&plain);
    }
}

static void asks(void) { failed = pthread_mutex_trylock(&plain); }

static void dies_holding(void) {
    pthread_mutex_lock(&robust);
    shared++;
}

int main(void) {
    init(&plain, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED);
    init(&again, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED);
    init(&robust, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
    init(&ceiling, PTHREAD_PRIO_PROTECT, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED);

    pthread_mutex_lock(&plain);
    finish(start(asks));
    pthread_t waits = start(adds);
    turn(1);
    shared++;
    pthread_mutex_unlock(&plain);
    finish(waits);

    pthread_mutex_lock(&again);
    int nested = pthread_mutex_lock(&again);
    pthread_mutex_unlock(&again);
    pthread_mutex_unlock(&again);

    finish(start(dies_holding));
    int died = pthread_mutex_lock(&robust);
    int repaired = pthread_mutex_consistent(&robust);
    pthread_mutex_unlock(&robust);

    int highest = 0;
    int known = pthread_mutex_getprioceiling(&ceiling, &highest);
    printf("%d %d %d %d %d %d %d\n", shared, failed == EBUSY, nested, died == EOWNERDEAD, repaired, known, highest > 0);
    return 0;
}
