/* hg06_readshared: written before the threads exist, only read by them, without a lock. Clean: reads do not race with reads. */
#include "corpus.h"

static int x;

static void child(void) { use(x); }

int main(void) {
    x = 5;
    RUN(child, child);
    printf("%d\n", x);
    return 0;
}
