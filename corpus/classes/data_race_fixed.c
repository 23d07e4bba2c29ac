/* The counter of data_race.c under a mutex. */
#include <pthread.h>
#include <stdio.h>

static int counter;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *add(void *amount) {
    pthread_mutex_lock(&m);
    counter += *(int *)amount;
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    int a = 1, b = 2;
    pthread_create(&one, NULL, add, &a);
    pthread_create(&two, NULL, add, &b);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", counter);
    return 0;
}
