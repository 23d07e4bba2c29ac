/* A plain mutex around a counter, statically and dynamically initialised. Clean: every access holds the same mutex. */
#include "corpus.h"

MUTEX(fixed);
static pthread_mutex_t made;
static int a, b;

static void count(void) {
    for (int i = 0; i < 50; i++) {
        LOCK(fixed);
        a++;
        UNLOCK(fixed);
        LOCK(made);
        b++;
        UNLOCK(made);
    }
}

int main(void) {
    pthread_mutex_init(&made, NULL);
    RUN(count, count);
    pthread_mutex_destroy(&made);
    printf("%d %d\n", a, b);
    return 0;
}
