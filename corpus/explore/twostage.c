/* twostage_N: N - 1 threads write the first value under one mutex and then the second, one more than it, under another; one thread reads both in the same way and
 * compares. Free of races; the assertion fails when the reader comes between the two stages. The argument is N. */
#include "corpus.h"
#include <assert.h>

MUTEX(first_lock);
MUTEX(second_lock);
static int first, second;

static void *writer(void *unused) {
    (void)unused;
    LOCK(first_lock);
    first = 1;
    UNLOCK(first_lock);
    LOCK(second_lock);
    second = 2;
    UNLOCK(second_lock);
    return NULL;
}

static void *reader(void *unused) {
    (void)unused;
    turn(2);
    LOCK(first_lock);
    int seen = first;
    UNLOCK(first_lock);
    if (seen == 0) return NULL;
    LOCK(second_lock);
    int then = second;
    UNLOCK(second_lock);
    assert(then == seen + 1); // ASSERT:1
    return NULL;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 2;
    pthread_t threads[128];
    for (int i = 0; i < count; i++) threads[i] = start_with(i + 1 < count ? writer : reader, NULL);
    for (int i = 0; i < count; i++) finish(threads[i]);
    printf("%d %d\n", first, second);
    return 0;
}
