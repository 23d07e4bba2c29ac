/* 57: atomic increments and atomic loads of one counter by four threads. Clean: atomics do not race. */
#include "corpus.h"
#include <stdatomic.h>

static atomic_int x;

static void writer(void) {
    for (int i = 0; i < 5; i++) atomic_fetch_add(&x, 1);
}

static void reader(void) {
    while (atomic_load(&x) < 10) usleep(200);
}

int main(void) {
    RUN(writer, writer, reader, reader);
    printf("%d\n", atomic_load(&x));
    return 0;
}
