/* volatile is not atomic: a volatile flag read and written by two threads is a data race like any other.
 * The flag is the only shared location; the writer comes a turn later. */
#include "corpus.h"

static volatile int flag;

static void reader(void) {
    use(flag); // RACE:flag:A
}

static void writer(void) {
    turn(1);
    flag = 1; // RACE:flag:B
}

int main(void) {
    RUN(reader, writer);
    printf("%d\n", flag);
    return 0;
}
