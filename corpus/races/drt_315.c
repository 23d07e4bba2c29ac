/* 315: two threads empty a stack under the mutex; main polls the size under the mutex and, once it is zero, uses the stack without. Clean, though a lockset becomes empty. */
#include "corpus.h"

MUTEX(m);
static int items[2] = {1, 2}, size = 2, sum;

static void popper(void) {
    LOCK(m);
    size--;
    sum += items[size];
    items[size] = 0;
    UNLOCK(m);
}

int main(void) {
    pthread_t a = start(popper), b = start(popper);
    for (int left = 2; left;) {
        LOCK(m);
        left = size;
        UNLOCK(m);
        if (left) usleep(1000);
    }
    items[0] = sum;
    finish(a);
    finish(b);
    printf("%d\n", items[0]);
    return 0;
}
