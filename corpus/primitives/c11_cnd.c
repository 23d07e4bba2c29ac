/* C11 condition variables: cnd_wait woken by cnd_signal and by cnd_broadcast, cnd_timedwait that times out. Clean: all flags are guarded. */
#include "corpus.h"
#include <threads.h>

static mtx_t m;
static cnd_t c;
static int phase, timeouts;

static int waiter(void *unused) {
    (void)unused;
    mtx_lock(&m);
    while (phase < 1) cnd_wait(&c, &m);
    phase = 2;
    cnd_signal(&c);
    while (phase < 3) cnd_wait(&c, &m);
    mtx_unlock(&m);
    return 0;
}

int main(void) {
    mtx_init(&m, mtx_plain);
    cnd_init(&c);
    thrd_t thread;
    mtx_lock(&m);
    struct timespec soon = deadline(CLOCK_REALTIME, 4);
    while (cnd_timedwait(&c, &m, &soon) != thrd_timedout) {}
    timeouts = 1;
    mtx_unlock(&m);
    thrd_create(&thread, waiter, NULL);
    turn(1);
    mtx_lock(&m);
    phase = 1;
    cnd_signal(&c);
    while (phase < 2) cnd_wait(&c, &m);
    phase = 3;
    cnd_broadcast(&c);
    mtx_unlock(&m);
    thrd_join(thread, NULL);
    cnd_destroy(&c);
    mtx_destroy(&m);
    printf("%d %d\n", phase, timeouts);
    return 0;
}
