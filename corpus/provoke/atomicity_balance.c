/* Atomicity violation (read, write, write): a deposit between the two critical sections of a withdrawal is lost. FIXED: one section. */
#include <assert.h>
#include <corpus.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;

static void withdraw(void) {
    pthread_mutex_lock(&m);
    int seen = balance;
#ifndef FIXED
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
#endif
    balance = seen - 10;
    pthread_mutex_unlock(&m);
}

static void deposit(void) {
    turn(2);
    pthread_mutex_lock(&m);
    balance += 50;
    pthread_mutex_unlock(&m);
}

int main(void) {
    RUN(withdraw, deposit);
    assert(balance == 140);
    puts("1");
    return 0;
}
