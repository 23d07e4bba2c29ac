/* 103: the parts of one array are protected by different mutexes, each part always by the same. Clean. */
#include "corpus.h"

static pthread_mutex_t m[4];
static int array[4];

static void worker(void) {
    for (int i = 0; i < 4; i++) {
        LOCK(m[i]);
        array[i]++;
        UNLOCK(m[i]);
    }
}

int main(void) {
    for (int i = 0; i < 4; i++) pthread_mutex_init(&m[i], NULL);
    RUN(worker, worker);
    printf("%d\n", array[0] + array[1] + array[2] + array[3]);
    return 0;
}
