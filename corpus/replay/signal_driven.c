/* A timer signal strikes while two threads count; the output tells how far they were when it struck, which differs from run to run.
 * A replay must deliver the signal to the same thread at the same point, and print the same numbers. */
#include "corpus.h"
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>

static atomic_long counters[2], struck_at[2];
static atomic_int strikes;

static void on_alarm(int number) {
    (void)number;
    int n = atomic_fetch_add(&strikes, 1);
    if (n < 2) atomic_store(&struck_at[n], atomic_load(&counters[0]) + atomic_load(&counters[1]));
}

static void *count(void *argument) {
    long me = (long)argument;
    while (atomic_load(&strikes) < 2) atomic_fetch_add(&counters[me], 1);
    return NULL;
}

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    pthread_t a = start_with(count, (void *)0), b = start_with(count, (void *)1);
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    finish(a);
    finish(b);
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    printf("%ld %ld\n", atomic_load(&struck_at[0]), atomic_load(&struck_at[1]));
    return 0;
}
