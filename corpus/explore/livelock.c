/* Two polite threads: each raises its hand and withdraws when it sees the other's. In lockstep they can go on like this for ever; a bound of 10,000 rounds keeps the program finite. */
#include "corpus.h"
#include <sched.h>
#include <stdatomic.h>

static atomic_int hand[2];
static int rounds[2];

static void *polite(void *argument) {
    int me = (int)(long)argument;
    turn(me);
    for (rounds[me] = 1; rounds[me] < 10000; rounds[me]++) {
        atomic_store(&hand[me], 1);
        if (!atomic_load(&hand[1 - me])) break;
        atomic_store(&hand[me], 0); // LIVELOCK:1
        sched_yield();
    }
    atomic_store(&hand[me], 0);
    return NULL;
}

int main(void) {
    pthread_t a = start_with(polite, (void *)0), b = start_with(polite, (void *)1);
    finish(a);
    finish(b);
    printf("%d %d\n", rounds[0], rounds[1]);
    return 0;
}
