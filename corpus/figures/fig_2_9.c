/* Figure 2.9: worker uses a structure through a pointer that main sets after starting it. In the wrong order the pointer is null.
 * Race on the pointer and, since nothing orders publication, on the structure's contents. */
#include "corpus.h"

typedef struct {
    int value;
} my_struct;

static my_struct *volatile x;
static int computed;

static my_struct *create_my_struct(void) {
    my_struct *s = malloc(sizeof *s); // RACE:value:A
    s->value = 21;                    // RACE:value:A
    return s;
}

static void worker(void) {
    turn(1);
    my_struct *s = x;    // RACE:x:B
    int value = s->value; // RACE:value:B
    computed = value * 2;
}

int main(void) {
    pthread_t thread = start(worker);
    x = create_my_struct(); // RACE:x:A
    finish(thread);
    printf("%d\n", computed);
    free(x);
    return 0;
}
