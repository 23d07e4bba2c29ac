/* 53: a flag under one mutex works as a semaphore; the data is written under that mutex first and under another one later. Clean: users start only after they saw the flag. */
#include "corpus.h"

MUTEX(m1);
MUTEX(m2);
static int flag, x;

static void initialiser(void) {
    LOCK(m1);
    x = 1000;
    flag = 1;
    UNLOCK(m1);
}

static void user(void) {
    for (int seen = 0; !seen;) {
        LOCK(m1);
        seen = flag;
        UNLOCK(m1);
        if (!seen) usleep(1000);
    }
    LOCK(m2);
    x++;
    UNLOCK(m2);
}

int main(void) {
    RUN(initialiser, user, user);
    printf("%d\n", x);
    return 0;
}
