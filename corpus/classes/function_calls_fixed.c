/* Functions as atomic regions: `move` is one critical section, called in a loop by two threads. Each call is atomic; two
 * calls one after the other are not meant to be. */
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 1000 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int balance;

static void move(void) {
    pthread_mutex_lock(&m);
    balance++;
    pthread_mutex_unlock(&m);
}

static void *many(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) move();
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, many, NULL);
    pthread_create(&two, NULL, many, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", balance);
    return 0;
}
