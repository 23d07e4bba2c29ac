/* The main thread leaves by pthread_exit; the process lives until the last thread has ended.
 * Output and status come from a thread that outlives main. */
#include "corpus.h"

static void child(void) {
    turn(1);
    printf("outlived main\n");
}

int main(void) {
    pthread_detach(start(child));
    pthread_exit(NULL);
}
