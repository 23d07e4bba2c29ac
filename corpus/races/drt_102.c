/* 102: two neighbouring words in the middle of a large array, each written by main and read by a thread without order. Two races; the rest of the array is quiet. */
#include "corpus.h"

static int array[64];

static void reader(void) {
    turn(1);
    use(array[32]); // RACE:first:B
    turn(2);
    use(array[33]); // RACE:second:B
}

int main(void) {
    pthread_t thread = start(reader);
    array[32] = 777; // RACE:first:A
    turn(2);
    array[33] = 777; // RACE:second:A
    finish(thread);
    printf("%d\n", array[32] + array[33]);
    return 0;
}
