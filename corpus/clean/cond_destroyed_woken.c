/* A condition is destroyed right after its last waiter was woken, before that one has come back: twice inside the critical section and
   once behind it. Clean: POSIX allows it as soon as nobody waits who has not been woken. */
#include "corpus.h"
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t *condition;
static int go, woken;

static void waiter(void) {
    pthread_mutex_lock(&lock);
    while (!go)
        pthread_cond_wait(condition, &lock);
    woken++;
    pthread_mutex_unlock(&lock);
}

static void round_of(int order) {
    condition = malloc(sizeof *condition);
    pthread_cond_init(condition, NULL);
    go = 0;
    pthread_t t = start(waiter);
    pthread_mutex_lock(&lock);
    go = 1;
    if (order == 0)
        pthread_cond_signal(condition);
    else
        pthread_cond_broadcast(condition);
    if (order == 2)
        pthread_mutex_unlock(&lock);
    pthread_cond_destroy(condition);
    if (order != 2)
        pthread_mutex_unlock(&lock);
    pthread_join(t, NULL);
    free(condition);
}

int main(void) {
    for (int order = 0; order < 3; order++)
        round_of(order);
    printf("%d\n", woken);
    return 0;
}
