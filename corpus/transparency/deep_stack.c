/* Recursion 20,000 deep in a thread with an 8 MB stack, longjmp out of it, and again: shadow call stacks must follow. */
#include "corpus.h"
#include <setjmp.h>

static jmp_buf top;
static volatile long depth_reached;

static long dive(long depth) {
    volatile char pad[64];
    pad[depth % 64] = (char)depth;
    if (depth == 20000) {
        depth_reached += depth;
        if (depth_reached > 0) longjmp(top, 1);
        return 0;
    }
    return dive(depth + 1) + pad[depth % 64];
}

static void *diver(void *unused) {
    (void)unused;
    for (volatile int i = 0; i < 3; i++)
        if (setjmp(top) == 0) dive(0);
    return NULL;
}

int main(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 8u << 20);
    pthread_t thread;
    pthread_create(&thread, &attributes, diver, NULL);
    finish(thread);
    printf("%ld\n", depth_reached);
    return 0;
}
