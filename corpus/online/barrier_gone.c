/* The first thread to leave a barrier destroys it and releases its memory; the C library waits until all have left. Clean: what each did before is known to all. */
#include "corpus.h"
#include <stdlib.h>
static pthread_barrier_t *barrier;
static int parts[3];

static void part(int me) {
    parts[me] = 1;
    if (pthread_barrier_wait(barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        pthread_barrier_destroy(barrier);
        free(barrier);
    }
    use(parts[0] + parts[1] + parts[2]);
}

static void a(void) { part(0); }
static void b(void) { part(1); }
static void c(void) { part(2); }

int main(void) {
    for (int i = 0; i < 20; i++) {
        MUST((barrier = malloc(sizeof *barrier)));
        pthread_barrier_init(barrier, NULL, 3);
        RUN(a, b, c);
    }
    return 0;
}
