/* Atomicity violation (definition 1): withdraw reads the balance and writes it back in two critical
 * sections; a deposit in between is lost. */
#include <pthread.h>
#include <raddle.h>
#include <stdio.h>

static int balance = 100;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *withdraw(void *unused) {
    (void)unused;
    RADDLE_ATOMIC_BEGIN("withdraw");
    pthread_mutex_lock(&m);
    int seen = balance;
    pthread_mutex_unlock(&m); // ATOMIC:1
    pthread_mutex_lock(&m); // ATOMIC:2
    balance = seen - 10;
    pthread_mutex_unlock(&m);
    RADDLE_ATOMIC_END("withdraw");
    return NULL;
}

static void *deposit(void *unused) {
    (void)unused;
    pthread_mutex_lock(&m);
    balance += 50;
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, withdraw, NULL);
    pthread_create(&two, NULL, deposit, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", balance > 0);
    return 0;
}
