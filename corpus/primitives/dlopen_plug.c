/* The library of dlopen.c. Its counter starts at 100 by its constructor. */
#include <pthread.h>

static int counter;

__attribute__((constructor)) static void begin(void) { counter = 100; }

int plug_bump(pthread_mutex_t *mutex) {
    pthread_mutex_lock(mutex);
    int now = ++counter;
    pthread_mutex_unlock(mutex);
    return now;
}
