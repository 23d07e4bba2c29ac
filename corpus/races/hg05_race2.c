/* hg05_race2: a structure on main's stack, shared by two threads; one member is protected, the other is not. */
#include "corpus.h"

struct foo {
    int guarded, bare;
};

MUTEX(m);

static void *child(void *argument) {
    struct foo *foo = argument;
    LOCK(m);
    foo->guarded++;
    UNLOCK(m);
    return NULL;
}

static void *bare(void *argument) {
    struct foo *foo = argument;
    foo->bare++; // RACE:bare:A
    return NULL;
}

static void *bare_later(void *argument) {
    turn(1);
    struct foo *foo = argument;
    foo->bare++; // RACE:bare:B
    return NULL;
}

int main(void) {
    struct foo foo = {0, 0};
    pthread_t threads[4] = {start_with(child, &foo), start_with(child, &foo), start_with(bare, &foo), start_with(bare_later, &foo)};
    for (int i = 0; i < 4; i++) finish(threads[i]);
    printf("%d %d\n", foo.guarded, foo.bare);
    return 0;
}
