/* pthread_create and pthread_join, with a value passed in and a value handed back.
 * Clean: creation orders the parent's write before the child's read, the join orders the child's write before the parent's read. */
#include "corpus.h"

static int given, returned;

static void *child(void *argument) {
    given += *(int *)argument;
    return &returned;
}

int main(void) {
    int value = 41;
    void *result = NULL;
    given = 1;
    pthread_t thread = start_with(child, &value);
    pthread_join(thread, &result);
    MUST(result == &returned);
    printf("%d\n", given);
    return 0;
}
