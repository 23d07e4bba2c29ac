/* 114: a function-local static whose initialiser needs two others. Clean: nested guards. */
#include "corpus.h"

static int bar() {
    static int value = (usleep(1000), 1);
    return value;
}

static int foo() {
    static int value = bar() + 1;
    return value;
}

static void worker() {
    static int value = foo() + 1;
    use(value);
}

int main() {
    RUN(worker, worker);
    printf("%d\n", foo() + bar());
}
