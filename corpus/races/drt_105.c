/* 105: main writes, creates the thread, and from then on only reads, as the thread does; it writes again after the join. Clean. */
#include "corpus.h"

static int x;

static void worker(void) { use(x); }

int main(void) {
    x = 1;
    pthread_t thread = start(worker);
    use(x);
    finish(thread);
    x = 2;
    printf("%d\n", x);
    return 0;
}
