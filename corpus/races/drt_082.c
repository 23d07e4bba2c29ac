/* 82: objects are built and made visible through an array of plain pointers; a reader who sees a pointer uses the object. Race on the pointer; those on the contents follow from it. */
#include "corpus.h"

typedef struct {
    int index, element[16];
} object;

static object room[3];
static object *volatile visible[3];
static int good;

static void writer(void) {
    for (int i = 0; i < 3; i++) {
        room[i].index = i * 5;             // RACE:index:A
        room[i].element[i * 5] = 7777;     // RACE:element:A
        visible[i] = &room[i];             // RACE:pointer:A
    }
}

static void reader(void) {
    turn(1);
    for (int i = 0; i < 3; i++) {
        object *seen = visible[i]; // RACE:pointer:B
        if (!seen) continue;
        int index = seen->index;                         // RACE:index:B
        if (seen->element[index] == 7777) good++;        // RACE:element:B
    }
}

int main(void) {
    RUN(writer, reader);
    printf("%d\n", good);
    return 0;
}
