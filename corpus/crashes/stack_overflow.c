/* A thread with a small stack recurses until it is full. There is no room for a handler on that stack; the report is made on another one. */
#include "corpus.h"

static volatile int bottom = 1 << 30;

__attribute__((noinline)) static int deeper(int depth) {
    volatile char room[256];
    room[0] = (char)depth;
    if (depth == bottom) return 0;
    return deeper(depth + 1) + room[0]; // CRASH
}

static void *worker(void *argument) {
    use(deeper(0));
    return argument;
}

int main(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    pthread_t thread;
    MUST(pthread_create(&thread, &attributes, worker, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
