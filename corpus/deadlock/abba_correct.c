/* AB-BA repaired: a transfer always locks the account with the lower number first, whichever direction the money goes. */
#include "corpus.h"

typedef struct {
    int number;
    pthread_mutex_t lock;
    int balance;
} account;

static account a = {1, PTHREAD_MUTEX_INITIALIZER, 100}, b = {2, PTHREAD_MUTEX_INITIALIZER, 100};

static void transfer(account *from, account *to, int amount) {
    account *first = from->number < to->number ? from : to, *second = first == from ? to : from;
    LOCK(first->lock);
    LOCK(second->lock);
    from->balance -= amount;
    to->balance += amount;
    UNLOCK(second->lock);
    UNLOCK(first->lock);
}

static void t1(void) { transfer(&a, &b, 10); }
static void t2(void) {
    turn(1);
    transfer(&b, &a, 20);
}

int main(void) {
    RUN(t1, t2);
    printf("%d %d\n", a.balance, b.balance);
    return 0;
}
