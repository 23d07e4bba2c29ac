/* hg04_race: the same increment by two threads, no lock at all. */
#include "corpus.h"

static int x;

static void *child(void *order) {
    turn((int)(long)order);
    x++; // RACE:x:A
    return NULL;
}

int main(void) {
    pthread_t a = start_with(child, (void *)0), b = start_with(child, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", x);
    return 0;
}
