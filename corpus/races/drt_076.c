/* 76: a reference-counted object; whoever drops the last reference under the mutex destroys it, without the mutex. Clean: the counter orders all uses before the destruction. */
#include "corpus.h"

typedef struct {
    pthread_mutex_t m;
    int references, value;
} counted;

static counted *object;
static int destroyed;

static void release(counted *o) {
    LOCK(o->m);
    int left = --o->references;
    UNLOCK(o->m);
    if (left == 0) {
        o->value = 0;
        pthread_mutex_destroy(&o->m);
        free(o);
        destroyed = 1;
    }
}

static void user(void) {
    counted *mine = object;
    LOCK(mine->m);
    mine->value++;
    UNLOCK(mine->m);
    release(mine);
}

int main(void) {
    object = malloc(sizeof *object);
    pthread_mutex_init(&object->m, NULL);
    object->references = 2;
    object->value = 0;
    RUN(user, user);
    printf("%d\n", destroyed);
    return 0;
}
