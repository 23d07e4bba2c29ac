/* CyclicBarrier: four threads use a barrier of two, and which two meet is a matter of luck. In this run the writer meets the reader, which orders them; the reader may meet another. */
#include "corpus.h"

static pthread_barrier_t b;
static int x;

static void writer(void) {
    x = 1; // RACE:x:A
    pthread_barrier_wait(&b);
}

static void reader(void) {
    turn(1);
    pthread_barrier_wait(&b);
    use(x); // RACE:x:B
}

static void third(void) {
    turn(2);
    pthread_barrier_wait(&b);
}

static void fourth(void) {
    turn(3);
    pthread_barrier_wait(&b);
}

int main(void) {
    pthread_barrier_init(&b, NULL, 2);
    RUN(writer, reader, third, fourth);
    printf("%d\n", x);
    return 0;
}
