/* Figure 5.5: accesses of different sizes that overlap in part. Thread 1 writes byte 0, bytes 1..3 and bytes 4..6, thread 2 writes bytes 2..3 and reads byte 4.
 * Two races, one for each interval that both touch; bytes 0..1 and 5..6 belong to thread 1. */
#include "corpus.h"
#include <stdint.h>
#include <string.h>

static uint8_t memory[16] __attribute__((aligned(16)));
static volatile size_t three = 3;

static void thread_1(void) {
    memory[0] = 1;
    memset(&memory[1], 1, three); // RACE:two:A
    memset(&memory[4], 1, three); // RACE:four:A
}

static void thread_2(void) {
    turn(1);
    *(volatile uint16_t *)&memory[2] = 0x0202; // RACE:two:B
    use(*(volatile uint8_t *)&memory[4]);      // RACE:four:B
}

int main(void) {
    RUN(thread_1, thread_2);
    for (int i = 0; i < 7; i++) printf("%d", memory[i]);
    printf("\n");
    return 0;
}
