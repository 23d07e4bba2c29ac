/* An assertion fails in a thread: the C library's own message stays, and the report has the expression, the file, the line and the function. */
#include "corpus.h"
#include <assert.h>

static volatile int balance = -5;

__attribute__((noinline)) static void withdraw(void) {
    assert(balance >= 0); // CRASH
    use(0);
}

int main(void) {
    RUN(withdraw);
    return 0;
}
