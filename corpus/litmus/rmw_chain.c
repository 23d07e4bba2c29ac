/* A chain of release read-modify-writes: each link keeps the synchronisation of the ones before it, so the last reader sees the messages of all. */
#include "litmus.h"

static int first, second;
static atomic_int x;
static int r1;

static void t1(void) {
    first = 1;
    atomic_fetch_add_explicit(&x, 1, rel);
}

static void t2(void) {
    second = 1;
    atomic_fetch_add_explicit(&x, 1, rel);
}

static void t3(void) {
    turn(1);
    r1 = LOAD(x, acq);
    if (r1 == 2) use(first + second);
}

int main(void) {
    do {
        RUN(t1, t2, t3);
        printf("%d\n", r1);
    } ROUNDS_WITH((STORE(x, 0, rlx), first = second = r1 = 0));
    return 0;
}
