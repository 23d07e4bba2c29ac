/* 83: unsafe publication, the simple version: a heap integer and one pointer. */
#include "corpus.h"

static int *volatile pointer;
static int seen_value;

static void writer(void) {
    int *fresh = malloc(sizeof *fresh); // RACE:value:A
    *fresh = 777;                       // RACE:value:A
    pointer = fresh; // RACE:pointer:A
}

static void reader(void) {
    turn(1);
    int *seen = pointer;         // RACE:pointer:B
    if (seen) seen_value = *seen; // RACE:value:B
}

int main(void) {
    RUN(writer, reader);
    printf("%d\n", seen_value);
    free(pointer);
    return 0;
}
