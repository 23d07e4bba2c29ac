/* 313: each thread draws numbers from its own generator and sometimes hits the shared cell. The seeds are fixed, so the run is the same every time and both threads hit it. */
#include "corpus.h"

static int hits, misses[2];

static unsigned next(unsigned *state) {
    *state = *state * 1103515245u + 12345u;
    return (*state >> 16) & 7;
}

static void *worker(void *argument) {
    long me = (long)argument;
    turn((int)me);
    unsigned state = (unsigned)me + 1;
    for (int i = 0; i < 64; i++) {
        if (next(&state) == 3)
            hits++; // RACE:hits:A
        else
            misses[me]++;
    }
    return NULL;
}

int main(void) {
    pthread_t a = start_with(worker, (void *)0), b = start_with(worker, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", hits + misses[0] + misses[1]);
    return 0;
}
