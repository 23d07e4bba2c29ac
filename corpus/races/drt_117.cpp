/* 117: five threads arrive at a function-local static whose initialiser takes its time; four of them wait inside the guard. Clean. */
#include "corpus.h"

static int slow() {
    turn(1);
    return 1;
}

static void worker() {
    static int value = slow();
    use(value);
}

int main() {
    RUN(worker, worker, worker, worker, worker);
    printf("done\n");
}
