/* 8: synchronisation by thread creation and join: write, child writes, write. Clean. */
#include "corpus.h"

static int x;

static void worker(void) { x += 2; }

int main(void) {
    x = 1;
    pthread_t thread = start(worker);
    finish(thread);
    x += 3;
    printf("%d\n", x);
    return 0;
}
