/* tc02_simple_tls: the same increment, but the variable is thread-local: every thread has its own. Clean. */
#include "corpus.h"

static _Thread_local int x;
static int result[2];

static void *child(void *argument) {
    x++;
    result[(long)argument] = x;
    return NULL;
}

int main(void) {
    pthread_t a = start_with(child, (void *)0), b = start_with(child, (void *)1);
    x += 10;
    finish(a);
    finish(b);
    printf("%d %d %d\n", x, result[0], result[1]);
    return 0;
}
