/* tc21_pthonce: pthread_once orders the initialisation before every user, but not the users among themselves. What they do to the variable afterwards races. */
#include "corpus.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int initialised, unprotected;

static void initialise(void) {
    initialised = 1;
    unprotected = 100;
}

static void *child(void *order) {
    turn((int)(long)order);
    pthread_once(&once, initialise);
    use(initialised);
    unprotected++; // RACE:unprotected:A
    return NULL;
}

int main(void) {
    pthread_t a = start_with(child, (void *)0), b = start_with(child, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", unprotected);
    return 0;
}
