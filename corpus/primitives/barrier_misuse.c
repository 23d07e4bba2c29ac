/* What a barrier refuses, and a count of one: nobody to wait for, every thread is the serial one. */
#include "corpus.h"

static pthread_barrier_t empty, single;
static int serial;

static void passes(void) { serial += pthread_barrier_wait(&single) == PTHREAD_BARRIER_SERIAL_THREAD; }

int main(void) {
    int refused = pthread_barrier_init(&empty, NULL, 0);
    pthread_barrier_init(&single, NULL, 1);
    passes();
    finish(start(passes));
    pthread_barrier_destroy(&single);
    /* A barrier may be made anew where one was destroyed. */
    pthread_barrier_init(&single, NULL, 1);
    passes();
    pthread_barrier_destroy(&single);
    printf("%d %d\n", refused == EINVAL, serial);
    return 0;
}
