/* call_once and thread-specific storage with a destructor, in C11. Clean: once orders the initialiser, join orders the destructors. */
#include "corpus.h"
#include <threads.h>

static once_flag once = ONCE_FLAG_INIT;
static tss_t slot;
static int runs, gone[2];

static void destructor(void *value) { ++*(int *)value; }

static void initialise(void) {
    runs++;
    tss_create(&slot, destructor);
}

static int worker(void *argument) {
    call_once(&once, initialise);
    tss_set(slot, argument);
    MUST(tss_get(slot) == argument);
    return 0;
}

int main(void) {
    thrd_t a, b;
    thrd_create(&a, worker, &gone[0]);
    thrd_create(&b, worker, &gone[1]);
    thrd_join(a, NULL);
    thrd_join(b, NULL);
    tss_delete(slot);
    printf("%d %d %d\n", runs, gone[0], gone[1]);
    return 0;
}
