/* C11 mutexes: plain, timed and recursive; mtx_trylock and mtx_timedlock failing on a held mutex. Joins keep the mutex held during the attempts. */
#include "corpus.h"
#include <threads.h>

static mtx_t plain, timed, recursive;
static int counter, busy, late;

static int count(void *unused) {
    (void)unused;
    for (int i = 0; i < 20; i++) {
        mtx_lock(&plain);
        counter++;
        mtx_unlock(&plain);
        mtx_lock(&recursive);
        mtx_lock(&recursive);
        counter += 0;
        mtx_unlock(&recursive);
        mtx_unlock(&recursive);
    }
    return 0;
}

static int attempt(void *unused) {
    (void)unused;
    busy = mtx_trylock(&timed);
    struct timespec soon = deadline(CLOCK_REALTIME, 4);
    late = mtx_timedlock(&timed, &soon);
    return 0;
}

int main(void) {
    thrd_t a;
    mtx_init(&plain, mtx_plain);
    mtx_init(&timed, mtx_timed);
    mtx_init(&recursive, mtx_plain | mtx_recursive);
    thrd_create(&a, count, NULL);
    thrd_join(a, NULL);
    count(NULL);
    mtx_lock(&timed);
    thrd_create(&a, attempt, NULL);
    thrd_join(a, NULL);
    mtx_unlock(&timed);
    mtx_destroy(&plain);
    mtx_destroy(&timed);
    mtx_destroy(&recursive);
    printf("%d %d %d\n", counter, busy == thrd_busy, late == thrd_timedout);
    return 0;
}
