/* Blocked thread (definition 8): a thread ends after it has given its lock back. */
#include <corpus.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *orphan_maker(void *unused) {
    (void)unused;
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return NULL;
}

static void *waiter(void *unused) {
    (void)unused;
    pthread_mutex_lock(&m); // BLOCKED
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, orphan_maker, NULL);
    pthread_join(one, NULL);
    pthread_create(&two, NULL, waiter, NULL);
    pthread_join(two, NULL);
    puts("1");
    return 0;
}
