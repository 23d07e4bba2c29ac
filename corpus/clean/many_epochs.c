/* 40,000 critical sections (or twice the argument): clocks go far, and must not wrap into false alarms. */
#include "corpus.h"

MUTEX(m);
static int counter, rounds = 20000;

static void worker(void) {
    for (int i = 0; i < rounds; i++) {
        LOCK(m);
        counter++;
        UNLOCK(m);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) rounds = atoi(argv[1]);
    RUN(worker, worker);
    printf("%d\n", counter);
    return 0;
}
