/* 33: several generations of reading threads; main writes between generations, when none is alive. Clean. */
#include "corpus.h"

static int x;

static void reader(void) { use(x); }

int main(void) {
    for (int generation = 0; generation < 3; generation++) {
        x++;
        RUN(reader, reader, reader);
    }
    printf("%d\n", x);
    return 0;
}
