/* AB-BA at its smallest: transfers between two accounts in both directions, one after the other. */
#include "corpus.h"

typedef struct {
    pthread_mutex_t lock;
    int balance;
} account;

static account a = {PTHREAD_MUTEX_INITIALIZER, 100}, b = {PTHREAD_MUTEX_INITIALIZER, 100};

static void transfer(account *from, account *to, int amount) {
    LOCK(from->lock);
    LOCK(to->lock); // DEADLOCK:1
    from->balance -= amount;
    to->balance += amount;
    UNLOCK(to->lock);
    UNLOCK(from->lock);
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
