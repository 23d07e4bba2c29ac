/* pthread_exit from deep inside a thread, with a cleanup handler that runs on the way.
 * Clean: the join orders everything, including the handler's write, before main's read. */
#include "corpus.h"

static int steps;

static void tidy(void *amount) { steps += *(int *)amount; }

static void leave(void) { pthread_exit((void *)5); }

static void *child(void *unused) {
    (void)unused;
    int amount = 10;
    pthread_cleanup_push(tidy, &amount);
    leave();
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    void *result = NULL;
    pthread_t thread = start_with(child, NULL);
    pthread_join(thread, &result);
    printf("%d %ld\n", steps, (long)result);
    return 0;
}
