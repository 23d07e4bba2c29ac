/* tc06_two_races: two unrelated variables, each incremented by both threads without a lock, with protected work between. Two races, both due. */
#include "corpus.h"

MUTEX(m);
static int a, b, between;

static void child(void) {
    a++; // RACE:a:A
    LOCK(m);
    between++;
    UNLOCK(m);
    b++; // RACE:b:A
}

int main(void) {
    pthread_t thread = start(child);
    turn(1);
    a++; // RACE:a:B
    LOCK(m);
    between++;
    UNLOCK(m);
    turn(1);
    b++; // RACE:b:B
    finish(thread);
    printf("%d %d %d\n", a, b, between);
    return 0;
}
