/* 80: an object with its own mutex and condition lives on the stack of the waiting thread; the waker touches it only before it lets the waiter go. Clean. */
#include "corpus.h"

typedef struct {
    pthread_mutex_t m;
    pthread_cond_t c;
    int ready, value;
} mailbox;

static void *waker(void *argument) {
    mailbox *box = argument;
    turn(1);
    LOCK(box->m);
    box->value = 5;
    box->ready = 1;
    pthread_cond_signal(&box->c);
    UNLOCK(box->m);
    return NULL;
}

static int exchange(void) {
    mailbox box = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    pthread_t thread = start_with(waker, &box);
    LOCK(box.m);
    while (!box.ready) pthread_cond_wait(&box.c, &box.m);
    UNLOCK(box.m);
    int value = box.value;
    finish(thread);
    return value;
}

int main(void) {
    int sum = exchange();
    sum += exchange();
    printf("%d\n", sum);
    return 0;
}
