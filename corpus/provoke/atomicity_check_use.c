/* Atomicity violation (read, write, read): a pointer is checked in one critical section and used in the next; another thread takes it away
 * in between. FIXED: checked and used in one. */
#include <corpus.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int value = 1;
static int *current = &value;

static void user(void) {
    pthread_mutex_lock(&m);
    int there = current != NULL;
#ifndef FIXED
    pthread_mutex_unlock(&m);
    if (!there) return;
    pthread_mutex_lock(&m);
#endif
    if (there) use(*current);
    pthread_mutex_unlock(&m);
}

static void closer(void) {
    turn(2);
    pthread_mutex_lock(&m);
    current = NULL;
    pthread_mutex_unlock(&m);
}

int main(void) {
    RUN(user, closer);
    puts("1");
    return 0;
}
