/* hg03_inherit: each child inherits a cell that its parent initialised, which is fine; one cell is also written by the parent after the creation, which is not.
 * Cell 0 is ordered by creation and join. Cell 1 is written by the second child and, unordered, by main. */
#include "corpus.h"

static int cell[2];

static void first_child(void) { cell[0]++; }
static void second_child(void) {
    turn(1);
    cell[1]++; // RACE:cell:B
}

int main(void) {
    cell[0] = 1;
    cell[1] = 1;
    pthread_t a = start(first_child), b = start(second_child);
    cell[1] = 2; // RACE:cell:A
    finish(a);
    finish(b);
    cell[0]++;
    printf("%d %d\n", cell[0], cell[1]);
    return 0;
}
