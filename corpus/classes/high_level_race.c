/* High-level data race: a complex number. One thread writes both parts in one critical section, the other
 * in two: no access is unprotected, but readers can see half of an update. */
#include <pthread.h>
#include <stdio.h>

static double re, im;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *both(void *unused) {
    (void)unused;
    pthread_mutex_lock(&m); // VIEW:both
    re = 1.0;
    im = 1.0;
    pthread_mutex_unlock(&m);
    return NULL;
}

static void *second(void *unused) {
    (void)unused;
    pthread_mutex_lock(&m); // VIEW:re
    re = 2.0;
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m); // VIEW:im
    im = 2.0;
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, both, NULL);
    pthread_create(&two, NULL, second, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", re > 0 && im > 0);
    return 0;
}
