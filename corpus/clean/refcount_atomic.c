/* Atomic reference counting by the book: release on every decrement, an acquire fence before the destruction. Clean; without fence support it looks like a race with free. */
#include "corpus.h"
#include <stdatomic.h>

typedef struct {
    atomic_int references;
    int value[2];
} object;

static object *shared;
static atomic_int freed;

static void *user(void *argument) {
    long me = (long)argument;
    shared->value[me]++;
    if (atomic_fetch_sub_explicit(&shared->references, 1, memory_order_release) == 1) {
        atomic_thread_fence(memory_order_acquire);
        shared->value[0] += shared->value[1];
        atomic_store(&freed, shared->value[0]);
        free(shared);
    }
    return NULL;
}

int main(void) {
    shared = malloc(sizeof *shared);
    atomic_init(&shared->references, 2);
    shared->value[0] = shared->value[1] = 1;
    pthread_t a = start_with(user, (void *)0), b = start_with(user, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", atomic_load(&freed));
    return 0;
}
