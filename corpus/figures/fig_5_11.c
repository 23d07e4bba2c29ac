/* Figure 5.11: an increment of x and one through a pointer to its first byte, in one segment. The second is redundant: what races with it races with the first. */
#include "corpus.h"

static int x;
static char *ptr = (char *)&x;

static void increment(void) {
    x++;      // RACE:x:A
    (*ptr)++; // RACE:x:B
}

static void other(void) {
    turn(1);
    x = x + 10; // RACE:x:C
}

int main(void) {
    RUN(increment, other);
    printf("%d\n", x);
    return 0;
}
