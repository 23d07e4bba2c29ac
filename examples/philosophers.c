/* Dining philosophers: three threads, three forks, and a deadlock that needs all three of them.
 *
 *   raddle hunt examples/philosophers.c
 *
 * Each philosopher takes the left fork, then the right one. They sit down one after the other, so a plain run ends.
 * If each of them holds the left fork, nobody gets a right one.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { PHILOSOPHERS = 3 };
static pthread_mutex_t forks[PHILOSOPHERS];
static int meals[PHILOSOPHERS];

static void *dine(void *argument) {
    long me = (long)argument;
    usleep((useconds_t)(me * 40000));
    pthread_mutex_lock(&forks[me]);
    pthread_mutex_lock(&forks[(me + 1) % PHILOSOPHERS]);
    meals[me]++;
    pthread_mutex_unlock(&forks[(me + 1) % PHILOSOPHERS]);
    pthread_mutex_unlock(&forks[me]);
    return NULL;
}

int main(void) {
    pthread_t threads[PHILOSOPHERS];
    for (int i = 0; i < PHILOSOPHERS; i++) pthread_mutex_init(&forks[i], NULL);
    for (long i = 0; i < PHILOSOPHERS; i++) pthread_create(&threads[i], NULL, dine, (void *)i);
    int sum = 0;
    for (int i = 0; i < PHILOSOPHERS; i++) {
        pthread_join(threads[i], NULL);
        sum += meals[i];
    }
    printf("%d meals\n", sum);
    return 0;
}
