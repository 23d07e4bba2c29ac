/* quick_exit runs its own handlers and neither destructors nor atexit handlers; threads still run. */
#include "corpus.h"

static void quick(void) {
    printf("quick\n");
    fflush(stdout);
}
static void slow(void) { printf("never\n"); }
static void bystander(void) { turn(100); }

int main(void) {
    at_quick_exit(quick);
    atexit(slow);
    start(bystander);
    quick_exit(4);
}
