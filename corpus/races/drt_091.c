/* 91: as 90, but the users write the object, under a second mutex. Clean: publication by the first mutex, use under the second. */
#include "corpus.h"

MUTEX(m1);
MUTEX(m2);
static int *object;
static int storage[8];

static void publisher(void) {
    turn(1);
    LOCK(m1);
    storage[4] = 777;
    object = storage;
    UNLOCK(m1);
}

static void accessor(void) {
    int *seen = NULL;
    while (!seen) {
        LOCK(m1);
        seen = object;
        UNLOCK(m1);
        if (!seen) usleep(1000);
    }
    LOCK(m2);
    seen[4]++;
    UNLOCK(m2);
}

int main(void) {
    RUN(publisher, accessor, accessor);
    printf("%d\n", storage[4]);
    return 0;
}
