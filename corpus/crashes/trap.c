/* A breakpoint without a debugger: after the instruction, not at it, so that returning to it again would not end the program. */
#include "corpus.h"

static void worker(void) { __asm__ volatile("int3"); } // CRASH

int main(void) {
    RUN(worker);
    return 0;
}
