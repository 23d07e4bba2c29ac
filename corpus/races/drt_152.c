/* 152: an atexit handler reads what threads wrote that were joined before. Clean. */
#include "corpus.h"

static int x;

static void worker(void) { x += 5; }
static void handler(void) { printf("%d\n", x); }

int main(void) {
    atexit(handler);
    finish(start(worker));
    finish(start(worker));
    return 0;
}
