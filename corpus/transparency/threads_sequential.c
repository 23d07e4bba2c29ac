/* 2,000 threads (or the argument) one after the other: stacks and thread slots are reused, nothing may leak. Clean: create and join order everything. */
#include "corpus.h"

static long sum;

static void *body(void *argument) {
    char room[256];
    room[(long)argument % 256] = 1;
    sum += room[(long)argument % 256];
    return NULL;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 2000;
    for (long i = 0; i < count; i++) finish(start_with(body, (void *)i));
    printf("%ld\n", sum);
    return 0;
}
