/* tc01_simple_race: main and a child increment a global. */
#include "corpus.h"

static int x;

static void child(void) {
    x++; // RACE:x:A
}

int main(void) {
    pthread_t thread = start(child);
    turn(1);
    x++; // RACE:x:B
    finish(thread);
    printf("%d\n", x);
    return 0;
}
