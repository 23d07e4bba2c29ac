/* pthread_once from three threads: one initialises, the others wait for it and then read.
 * Clean: the end of the initialiser happens before every return of pthread_once. */
#include "corpus.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int value, runs;

static void initialise(void) {
    runs++;
    value = 12;
}

static void user(void) {
    pthread_once(&once, initialise);
    use(value);
}

int main(void) {
    RUN(user, user, user);
    printf("%d %d\n", runs, value);
    return 0;
}
