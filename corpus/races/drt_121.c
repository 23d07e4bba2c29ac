/* 121: double-checked locking with a plain pointer. The check outside the mutex races with the store inside; the contents follow. RaceQuest misses this one. */
#include "corpus.h"

typedef struct {
    long padding[8];
    int a;
} foo;

MUTEX(m);
static foo storage;
static foo *volatile object;

static void init_me(void) {
    if (!object) { // RACE:object:B
        LOCK(m);
        if (!object) {
            storage.a = 42;    // RACE:value:A
            object = &storage; // RACE:object:A
        }
        UNLOCK(m);
    }
}

static void *user(void *order) {
    turn((int)(long)order);
    init_me();
    foo *mine = object; // RACE:object:C
    use(mine->a);       // RACE:value:B
    return NULL;
}

int main(void) {
    pthread_t a = start_with(user, (void *)0), b = start_with(user, (void *)1);
    finish(a);
    finish(b);
    printf("%d\n", storage.a);
    return 0;
}
