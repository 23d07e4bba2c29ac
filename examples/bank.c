/* A small bank with two concurrency errors that a plain run does not show.
 *
 *   cargo run --release -- hunt examples/bank.c
 *
 * Two tellers work at the same bank. The second comes in a little later, so the program ends with the right balances
 * every time you try it. Still:
 *
 *  1. `interest_paid` is updated without a lock: when both tellers do it at the same time, one update is lost.
 *     A race detector that only looks at this run stays silent, because the account locks happen to order the two updates.
 *  2. `transfer` locks the account that pays and then the one that receives. Two transfers in opposite directions
 *     can wait for each other for ever.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

typedef struct {
    pthread_mutex_t lock;
    int balance;
} account;

static account alice = {PTHREAD_MUTEX_INITIALIZER, 100};
static account bob = {PTHREAD_MUTEX_INITIALIZER, 100};
static int interest_paid;

static void transfer(account *from, account *to, int amount) {
    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void pay_interest(account *to, int amount) {
    interest_paid += amount;
    pthread_mutex_lock(&to->lock);
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
}

static void *early_teller(void *unused) {
    (void)unused;
    pay_interest(&alice, 5);
    transfer(&alice, &bob, 30);
    return NULL;
}

static void *late_teller(void *unused) {
    (void)unused;
    usleep(50000);
    transfer(&bob, &alice, 20);
    pay_interest(&bob, 3);
    return NULL;
}

int main(void) {
    pthread_t early, late;
    pthread_create(&early, NULL, early_teller, NULL);
    pthread_create(&late, NULL, late_teller, NULL);
    pthread_join(early, NULL);
    pthread_join(late, NULL);
    printf("alice %d, bob %d, interest paid %d\n", alice.balance, bob.balance, interest_paid);
    return 0;
}
