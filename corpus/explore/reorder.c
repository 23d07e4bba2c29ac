/* reorder_N: N - 1 threads set a and then b, one checks that it sees both or neither. It fails when the checker comes between the two stores of every setter that began.
 * The more setters, the rarer. The argument is N. */
#include "corpus.h"
#include <assert.h>
#include <stdatomic.h>

static atomic_int a, b;

static void *setter(void *unused) {
    (void)unused;
    atomic_store(&a, 1);
    atomic_store(&b, -1);
    return NULL;
}

static void *checker(void *unused) {
    (void)unused;
    turn(2);
    int seen_a = atomic_load(&a), seen_b = atomic_load(&b);
    assert((seen_a == 0 && seen_b == 0) || (seen_a == 1 && seen_b == -1)); // ASSERT:1
    return NULL;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 3;
    pthread_t threads[128];
    for (int i = 0; i < count; i++) threads[i] = start_with(i + 1 < count ? setter : checker, NULL);
    for (int i = 0; i < count; i++) finish(threads[i]);
    printf("%d %d\n", atomic_load(&a), atomic_load(&b));
    return 0;
}
