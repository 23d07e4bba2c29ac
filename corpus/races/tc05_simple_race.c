/* tc05_simple_race: the variable is on main's stack and reaches the child as an argument; both increment it. */
#include "corpus.h"

static void *child(void *argument) {
    (*(int *)argument)++; // RACE:x:A
    return NULL;
}

int main(void) {
    int x = 0;
    pthread_t thread = start_with(child, &x);
    turn(1);
    x++; // RACE:x:B
    finish(thread);
    printf("%d\n", x);
    return 0;
}
