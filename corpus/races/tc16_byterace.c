/* tc16_byterace: two threads write neighbouring bytes of one word. Different memory locations: clean, whatever the detector's granularity. */
#include "corpus.h"

static char bytes[10];

static void child(void) {
    for (int i = 0; i < 5; i++) bytes[4]++;
}

int main(void) {
    pthread_t thread = start(child);
    for (int i = 0; i < 5; i++) bytes[5]++;
    finish(thread);
    printf("%d %d\n", bytes[4], bytes[5]);
    return 0;
}
