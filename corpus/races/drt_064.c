/* 64: thread 2 happens before thread 3, thread 1 is independent. The read of thread 1 races with the write of thread 3. */
#include "queue.h"

static queue q = QUEUE_INITIALIZER;
static int x;

static void t1(void) {
    use(x); // RACE:x:A
}

static void t2(void) {
    turn(1);
    use(x);
    put(&q, NULL);
}

static void t3(void) {
    get(&q);
    x = 1; // RACE:x:B
}

int main(void) {
    RUN(t1, t2, t3);
    printf("%d\n", x);
    return 0;
}
