/* 2,000 threads one after the other: stacks and thread slots are reused, nothing may leak. Clean: create and join order everything. */
#include "corpus.h"

static long sum;

static void *body(void *argument) {
    char room[256];
    room[(long)argument % 256] = 1;
    sum += room[(long)argument % 256];
    return NULL;
}

int main(void) {
    for (long i = 0; i < 2000; i++) finish(start_with(body, (void *)i));
    printf("%ld\n", sum);
    return 0;
}
