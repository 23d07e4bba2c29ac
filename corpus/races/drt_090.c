/* 90: an object is built and published under a mutex; readers fetch the pointer under the mutex and read the object without it. Clean. */
#include "corpus.h"

MUTEX(m);
static int *object;
static int storage[8];
static int good[2];

static void publisher(void) {
    turn(1);
    LOCK(m);
    storage[4] = 777;
    object = storage;
    UNLOCK(m);
}

static void *reader(void *slot) {
    int *seen = NULL;
    while (!seen) {
        LOCK(m);
        seen = object;
        UNLOCK(m);
        if (!seen) usleep(1000);
    }
    *(int *)slot = seen[4] == 777;
    return NULL;
}

int main(void) {
    pthread_t a = start(publisher), b = start_with(reader, &good[0]), c = start_with(reader, &good[1]);
    finish(a), finish(b), finish(c);
    printf("%d\n", good[0] + good[1]);
    return 0;
}
