/* Dining philosophers repaired: the last one takes the right fork first, so that no circle can close. */
#include "corpus.h"

enum { PHILOSOPHERS = 3, MEALS = 3 };
static pthread_mutex_t fork_[PHILOSOPHERS];
static int meals[PHILOSOPHERS];

static void *dine(void *argument) {
    long me = (long)argument, left = me, right = (me + 1) % PHILOSOPHERS;
    long first = left < right ? left : right, second = left < right ? right : left;
    for (int i = 0; i < MEALS; i++) {
        pthread_mutex_lock(&fork_[first]);
        pthread_mutex_lock(&fork_[second]);
        meals[me]++;
        pthread_mutex_unlock(&fork_[second]);
        pthread_mutex_unlock(&fork_[first]);
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
