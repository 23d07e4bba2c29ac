// Two tellers move money between two accounts. The total never changes, or so it seems.
//
// Two errors hide here, and an ordinary run shows neither:
//   - `transfer` locks the source account first: two transfers in opposite directions can wait for each other for ever;
//   - `audit` counts transfers without any lock: increments can get lost.
//
//   raddle hunt examples/bank.c

#include <pthread.h>
#include <stdio.h>

typedef struct {
    pthread_mutex_t lock;
    long balance;
} account;

static account savings = { PTHREAD_MUTEX_INITIALIZER, 1000 };
static account checking = { PTHREAD_MUTEX_INITIALIZER, 1000 };
static int audit;

static void transfer(account *from, account *to, long amount) {
    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
    audit++;
}

static void *teller_save(void *unused) {
    (void)unused;
    transfer(&checking, &savings, 100);
    return NULL;
}

static void *teller_spend(void *unused) {
    (void)unused;
    transfer(&savings, &checking, 30);
    return NULL;
}

int main(void) {
    pthread_t save, spend;
    pthread_create(&save, NULL, teller_save, NULL);
    pthread_create(&spend, NULL, teller_spend, NULL);
    pthread_join(save, NULL);
    pthread_join(spend, NULL);
    printf("savings %ld, checking %ld, transfers %d\n", savings.balance, checking.balance, audit);
    return savings.balance + checking.balance == 2000 ? 0 : 1;
}
