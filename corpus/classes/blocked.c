/* Blocked thread (definition 8): a thread ends while it holds a lock; another waits for it for ever. The process
 * ends by itself after a while. */
#include <corpus.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *orphan_maker(void *unused) {
    (void)unused;
    pthread_mutex_lock(&m);

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
    turn(2);
    puts("1");
    exit(0);
}
