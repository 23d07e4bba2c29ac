/* An atomic operation on a pointer that is null: where a tool performs it, the fault is in the tool's code, and the place is the program's. */
#include "corpus.h"
#include <stdatomic.h>

static atomic_int *volatile nowhere;

static void worker(void) { use(atomic_fetch_add(nowhere, 1)); } // CRASH

int main(void) {
    RUN(worker);
    return 0;
}
