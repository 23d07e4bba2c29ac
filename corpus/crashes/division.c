/* An integer is divided by zero in a thread. */
#include "corpus.h"

static volatile int divisor;

static void worker(void) { use(100 / divisor); } // CRASH

int main(void) {
    RUN(worker);
    return 0;
}
