/* 92: as 91 with an array whose elements are used by three threads. Clean. */
#include "corpus.h"

MUTEX(m1);
MUTEX(m2);
static int (*object)[10];
static int storage[10];

static void publisher(void) {
    LOCK(m1);
    for (int i = 0; i < 10; i++) storage[i] = 777;
    object = &storage;
    UNLOCK(m1);
}

static void *accessor(void *index) {
    int (*seen)[10] = NULL;
    while (!seen) {
        LOCK(m1);
        seen = object;
        UNLOCK(m1);
        if (!seen) usleep(1000);
    }
    LOCK(m2);
    (*seen)[(long)index]++;
    UNLOCK(m2);
    return NULL;
}

int main(void) {
    pthread_t threads[3] = {start_with(accessor, (void *)0), start_with(accessor, (void *)5), start_with(accessor, (void *)9)};
    turn(1);
    publisher();
    for (int i = 0; i < 3; i++) finish(threads[i]);
    printf("%d %d %d %d\n", storage[0], storage[4], storage[5], storage[9]);
    return 0;
}
