/* A spin lock around a counter. Clean: every access holds it. */
#include "corpus.h"

static pthread_spinlock_t lock;
static int counter;

static void count(void) {
    for (int i = 0; i < 20; i++) {
        pthread_spin_lock(&lock);
        counter++;
        pthread_spin_unlock(&lock);
    }
}

int main(void) {
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    RUN(count, count);
    pthread_spin_destroy(&lock);
    printf("%d\n", counter);
    return 0;
}
