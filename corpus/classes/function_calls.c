/* Functions as atomic regions: `move` is meant to be atomic, and another thread's `set` comes in between its two critical
 * sections. The semaphores choose the unlucky moment. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t half, go_on;
static int balance;

static void move(void) {
    pthread_mutex_lock(&m);
    int seen = balance;
    pthread_mutex_unlock(&m); // MOVE:1
    sem_post(&half);
    sem_wait(&go_on);
    pthread_mutex_lock(&m); // MOVE:2
    balance = seen + 1;
    pthread_mutex_unlock(&m);
}

static void set(void) {
    pthread_mutex_lock(&m);
    balance = 10;
    pthread_mutex_unlock(&m);
}

static void *other(void *unused) {
    (void)unused;
    sem_wait(&half);
    set();
    sem_post(&go_on);
    return NULL;
}

int main(void) {
    pthread_t one;
    sem_init(&half, 0, 0);
    sem_init(&go_on, 0, 0);
    pthread_create(&one, NULL, other, NULL);
    move();
    pthread_join(one, NULL);
    printf("%d\n", balance);
    return 0;
}
