/* 122: a variation of double-checked locking: the object is built outside the mutex and stored inside if nobody was quicker. The unlocked check races all the same. */
#include "corpus.h"

MUTEX(m);
static int *volatile object;

static void init_me(void) {
    if (object) return; // RACE:object:B
    int *fresh = malloc(sizeof *fresh); // RACE:value:A
    *fresh = 42;                        // RACE:value:A
    LOCK(m);
    if (!object) {
        object = fresh; // RACE:object:A
        fresh = NULL;
    }
    UNLOCK(m);
    free(fresh);
}

static void *user(void *order) {
    turn((int)(long)order);
    init_me();
    int *mine = object; // RACE:object:C
    use(*mine);         // RACE:value:B
    return NULL;
}

int main(void) {
    pthread_t a = start_with(user, (void *)0), b = start_with(user, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", *object);
    free(object);
    return 0;
}
