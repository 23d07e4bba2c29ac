/* 302: many accesses to x are protected by m1, one read in four by the wrong mutex. The threads run one after the other, so m1 orders everything that was observed. */
#include "corpus.h"

MUTEX(m1);
MUTEX(m2);
static int x;

static void *worker(void *order) {
    turn((int)(long)order);
    for (int i = 0; i < 8; i++) {
        switch (i % 4) {
        case 1:
            LOCK(m2);
            use(x); // RACE:x:A
            UNLOCK(m2);
            break;
        case 3:
            LOCK(m1);
            x++; // RACE:x:B
            UNLOCK(m1);
            break;
        default:
            LOCK(m1);
            use(x);
            UNLOCK(m1);
        }
    }
    return NULL;
}

int main(void) {
    pthread_t a = start_with(worker, (void *)0), b = start_with(worker, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", x);
    return 0;
}
