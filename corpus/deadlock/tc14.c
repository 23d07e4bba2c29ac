/* tc14: five dining philosophers, each taking the left fork first, twenty meals each. They come to table one after the other, so nobody starves in this run;
 * all five holding their left fork is the deadlock. */
#include "corpus.h"

enum { PHILOSOPHERS = 5, MEALS = 20 };
static pthread_mutex_t fork_[PHILOSOPHERS];
static int meals[PHILOSOPHERS];

static void *dine(void *argument) {
    long me = (long)argument;
    turn((int)me);
    for (int i = 0; i < MEALS; i++) {
        pthread_mutex_lock(&fork_[me]);
        pthread_mutex_lock(&fork_[(me + 1) % PHILOSOPHERS]); // DEADLOCK:1
        meals[me]++;
        pthread_mutex_unlock(&fork_[(me + 1) % PHILOSOPHERS]);
        pthread_mutex_unlock(&fork_[me]);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[PHILOSOPHERS];
    for (int i = 0; i < PHILOSOPHERS; i++) pthread_mutex_init(&fork_[i], NULL);
    for (long i = 0; i < PHILOSOPHERS; i++) threads[i] = start_with(dine, (void *)i);
    int sum = 0;
    for (int i = 0; i < PHILOSOPHERS; i++) {
        finish(threads[i]);
        sum += meals[i];
    }
    printf("%d\n", sum);
    return 0;
}
