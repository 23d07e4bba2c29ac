/* Figure 5.17: the program of figure 5.2 with N protected increments in each thread (the argument). Of all interleavings only those in which worker
 * ends before main's access to x, or main has not yet taken the mutex since, show the race to happens-before. The program of the scalability table. */
#include "corpus.h"

MUTEX(m);
static int x, y, count;

static void worker(void) {
    turn(2);
    for (int i = 0; i < count; i++) {
        LOCK(m);
        y++;
        UNLOCK(m);
    }
    x++; // RACE:x:B
}

int main(int argc, char **argv) {
    count = argc > 1 ? atoi(argv[1]) : 10;
    pthread_t thread = start(worker);
    x++; // RACE:x:A
    for (int i = 0; i < count; i++) {
        LOCK(m);
        y++;
        UNLOCK(m);
    }
    finish(thread);
    printf("%d %d\n", x, y);
    return 0;
}
