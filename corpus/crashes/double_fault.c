/* The program's own handler of SIGSEGV crashes: the signal is blocked then, and the kernel ends the program without asking anybody. */
#include "corpus.h"
#include <signal.h>

static int *volatile nowhere;

static void on_fault(int number) {
    ssize_t written = write(1, "fault\n", 6);
    (void)written;
    *nowhere = number;
}

static void worker(void) { *nowhere = 1; }

int main(void) {
    signal(SIGSEGV, on_fault);
    RUN(worker);
    return 0;
}
