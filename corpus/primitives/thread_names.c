/* Threads with names: a report must call them by the names that the program gave them. */
#include "corpus.h"

static int x;

static void first(void) {
    pthread_setname_np(pthread_self(), "reader");
    use(x); // RACE:x:A
}

static void second(void) {
    pthread_setname_np(pthread_self(), "writer");
    turn(1);
    x = 1; // RACE:x:B
}

int main(void) {
    char name[16];
    RUN(first, second);
    pthread_setname_np(pthread_self(), "director");
    pthread_getname_np(pthread_self(), name, sizeof name);
    printf("%s %d\n", name, x);
    return 0;
}
