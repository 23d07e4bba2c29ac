/* Two threads draw random bytes and fill a table whose order depends on them: under a seed everything is the same again. */
#include "corpus.h"
#include <string.h>
#include <sys/random.h>

int getentropy(void *buffer, size_t bytes);

MUTEX(m);
static char order[16];
static unsigned slots[16];

static void put(unsigned key, char who) {
    LOCK(m);
    slots[key % 16]++;
    order[strlen(order)] = who;
    UNLOCK(m);
}

static void draws(void) {
    for (int i = 0; i < 4; i++) {
        unsigned key;
        MUST(getrandom(&key, sizeof key, 0) == sizeof key);
        put(key, 'a');
    }
}

static void asks(void) {
    for (int i = 0; i < 4; i++) {
        unsigned char bytes[11];
        MUST(getentropy(bytes, sizeof bytes) == 0);
        put(bytes[10], 'b');
    }
}

int main(void) {
    RUN(draws, asks);
    for (int i = 0; i < 16; i++) printf("%u", slots[i]);
    printf(" %s\n", order);
    return 0;
}
