/* 65: threads 1 and 2 write under the mutex, thread 2 hands over to thread 3, which writes without it. Thread 1 comes last and races with thread 3. */
#include "queue.h"

static queue q = QUEUE_INITIALIZER;
MUTEX(m);
static int x;

static void t1(void) {
    turn(1);
    LOCK(m);
    x++; // RACE:x:A
    UNLOCK(m);
}

static void t2(void) {
    LOCK(m);
    x++;
    UNLOCK(m);
    put(&q, NULL);
}

static void t3(void) {
    get(&q);
    x++; // RACE:x:B
}

int main(void) {
    RUN(t1, t2, t3);
    printf("%d\n", x);
    return 0;
}
