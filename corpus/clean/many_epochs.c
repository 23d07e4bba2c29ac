/* 40,000 critical sections: clocks go far, and must not wrap into false alarms. */
#include "corpus.h"

MUTEX(m);
static int counter;

static void worker(void) {
    for (int i = 0; i < 20000; i++) {
        LOCK(m);
        counter++;
        UNLOCK(m);
    }
}

int main(void) {
    RUN(worker, worker);
    printf("%d\n", counter);
    return 0;
}
