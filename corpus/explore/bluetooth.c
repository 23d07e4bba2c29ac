/* The Bluetooth driver of the KISS paper, reduced: a request is counted in after it has looked at the stopping flag, and the stop may slip in between.
 * The driver then works although it has been stopped. -DCORRECT counts first and looks afterwards. */
#include "corpus.h"
#include <assert.h>
#include <semaphore.h>
#include <stdatomic.h>

static atomic_int stopping, stopped, pending = 1;
static sem_t all_out;

static void leave(void) {
    if (atomic_fetch_sub(&pending, 1) == 1) sem_post(&all_out);
}

static int enter(void) {
#ifdef CORRECT
    atomic_fetch_add(&pending, 1);
    if (atomic_load(&stopping)) {
        leave();
        return 0;
    }
#else
    if (atomic_load(&stopping)) return 0;
    atomic_fetch_add(&pending, 1);
#endif
    return 1;
}

static void request(void) {
    if (enter()) {
        assert(!atomic_load(&stopped)); // ASSERT:1
        leave();
    }
}

static void stop(void) {
    turn(1);
    atomic_store(&stopping, 1);
    leave();
    sem_wait(&all_out);
    atomic_store(&stopped, 1);
}

int main(void) {
    sem_init(&all_out, 0, 0);
    RUN(request, stop);
    printf("%d\n", atomic_load(&stopped));
    return 0;
}
