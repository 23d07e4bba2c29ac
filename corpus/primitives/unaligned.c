/* Unaligned accesses of 2, 4 and 8 bytes inside a packed structure; one pair overlaps in a single byte across two 8-byte cells, which is a race.
 * The other fields are touched by one thread only. */
#include "corpus.h"
#include <stdint.h>

struct __attribute__((packed)) record {
    uint8_t tag;
    uint64_t wide;   /* bytes 1..8 */
    uint32_t middle; /* bytes 9..12 */
    uint16_t narrow; /* bytes 13..14 */
};
static struct record shared __attribute__((aligned(16)));

static void first(void) {
    shared.wide = 0x0101010101010101; // RACE:wide:A
    shared.narrow = 2;
}

static void second(void) {
    turn(1);
    ((volatile uint8_t *)&shared)[8] = 9; // RACE:wide:B
    shared.middle = 3;
}

int main(void) {
    RUN(first, second);
    printf("%llx %u %u\n", (unsigned long long)shared.wide, shared.middle, shared.narrow);
    return 0;
}
