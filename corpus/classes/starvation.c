/* Starvation (definition 6): a polite thread tries a lock again and again while another keeps taking it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static atomic_int tries;
static int work;

static void *polite(void *unused) {
    (void)unused;
    for (;;) {
        if (pthread_mutex_trylock(&m) == 0) break; // STARVES
        atomic_fetch_add(&tries, 1);
        sched_yield();
    }
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_t one;
    pthread_mutex_lock(&m);
    pthread_create(&one, NULL, polite, NULL);
    /* The lock is free only for an instant in each round. */
    while (atomic_load(&tries) == 0) sched_yield();
    for (int round = 0; round < 100; round++) {
        work++;
        pthread_mutex_unlock(&m);
        pthread_mutex_lock(&m); // WINS
    }
    pthread_mutex_unlock(&m);
    pthread_join(one, NULL);
    printf("%d\n", work > 0);
    return 0;
}
