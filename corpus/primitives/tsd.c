/* Thread-specific data with a destructor that runs at thread end, twice for one key because it sets the value again.
 * Clean: the destructors' writes are part of the ending thread and happen before its join. */
#include "corpus.h"

static pthread_key_t key;
static int destroyed[2];

static void destructor(void *value) {
    int *counter = (int *)value;
    (*counter)++;
    if (*counter == 1) pthread_setspecific(key, counter);
}

static void *worker(void *counter) {
    pthread_setspecific(key, counter);
    MUST(pthread_getspecific(key) == counter);
    return NULL;
}

int main(void) {
    pthread_key_create(&key, destructor);
    pthread_t a = start_with(worker, &destroyed[0]), b = start_with(worker, &destroyed[1]);
    finish(a);
    finish(b);
    pthread_key_delete(key);
    printf("%d %d\n", destroyed[0], destroyed[1]);
    return 0;
}
