/* The lost update on a plain variable: to reach the result 1 a scheduler must switch between the read and the write of one increment. */
#include "corpus.h"

static int x;

static void *increment(void *order) {
    turn((int)(long)order);
    int seen = x; // RACE:x:A
    x = seen + 1; // RACE:x:B
    return NULL;
}

int main(void) {
    pthread_t a = start_with(increment, (void *)0), b = start_with(increment, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", x);
    return 0;
}
