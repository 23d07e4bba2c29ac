/* 131: the address of a stack variable goes through a queue to a thread that changes it and answers through another queue before the variable dies. Clean. */
#include "queue.h"

static queue there = QUEUE_INITIALIZER, back = QUEUE_INITIALIZER;

static void doubler(void) {
    for (int i = 0; i < 2; i++) {
        int *number = get(&there);
        *number *= 2;
        put(&back, number);
    }
}

static int ask(int value) {
    int number = value;
    put(&there, &number);
    get(&back);
    return number;
}

int main(void) {
    pthread_t thread = start(doubler);
    int sum = ask(3);
    sum += ask(4);
    finish(thread);
    printf("%d\n", sum);
    return 0;
}
