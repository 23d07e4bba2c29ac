/* tc03_re_excl: a variable goes from main to a child and, after the join, to main again and to a next child: always one owner. Clean. */
#include "corpus.h"

static int x;

static void child(void) { x++; }

int main(void) {
    for (int i = 0; i < 3; i++) {
        x++;
        finish(start(child));
    }
    printf("%d\n", x);
    return 0;
}
