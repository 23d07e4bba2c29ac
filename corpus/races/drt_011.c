/* 11: two readers report under a mutex that they are done; the writer waits for both reports, then writes without a lock. Clean. */
#include "corpus.h"

MUTEX(m);
COND(c);
static int done, x;

static void reader(void) {
    use(x);
    LOCK(m);
    done++;
    pthread_cond_signal(&c);
    UNLOCK(m);
}

static void writer(void) {
    LOCK(m);
    while (done < 2) pthread_cond_wait(&c, &m);
    UNLOCK(m);
    x = 2;
}

int main(void) {
    RUN(reader, reader, writer);
    printf("%d\n", x);
    return 0;
}
