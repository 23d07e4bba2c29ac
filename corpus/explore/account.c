/* account: a transfer locks its own account and changes the other's without a lock. A deposit there at the same time is lost. */
#include "corpus.h"

typedef struct {
    pthread_mutex_t lock;
    int amount;
} account;

static account a = {PTHREAD_MUTEX_INITIALIZER, 100}, b = {PTHREAD_MUTEX_INITIALIZER, 100};

static void deposit(account *to, int amount) {
    LOCK(to->lock);
    to->amount += amount; // RACE:amount:A
    UNLOCK(to->lock);
}

static void transfer(account *from, account *to, int amount) {
    LOCK(from->lock);
    from->amount -= amount;
    to->amount += amount; // RACE:amount:B
    UNLOCK(from->lock);
}

static void depositor(void) { deposit(&b, 10); }
static void mover(void) {
    turn(1);
    transfer(&a, &b, 50);
}

int main(void) {
    RUN(depositor, mover);
    printf("%d %d\n", a.amount, b.amount);
    return 0;
}
