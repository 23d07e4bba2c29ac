/* The shape of a parallel sort: two threads sort halves of their own (on their stacks) and tell how far they are under a lock. No race. */
#include <pthread.h>
#include <stddef.h>
static int sorted, swaps;
static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER, counts = PTHREAD_MUTEX_INITIALIZER;
static void *sort(void *unused) {
    int found = 0;
    for (int i = 0; i < 8; i++) found += i & 1;
    pthread_mutex_lock(&counts);
    swaps += found;
    pthread_mutex_unlock(&counts);
    pthread_mutex_lock(&pool);
    sorted++;
    pthread_mutex_unlock(&pool);
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, sort, NULL);
    pthread_create(&b, NULL, sort, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return sorted != 2;
}
