/* pthread_spin_trylock on a held and on a free spin lock. The join keeps the lock held during the first attempt. */
#include "corpus.h"

static pthread_spinlock_t lock;
static int result;

static void attempt(void) {
    result = pthread_spin_trylock(&lock);
    if (result == 0) pthread_spin_unlock(&lock);
}

int main(void) {
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_lock(&lock);
    finish(start(attempt));
    int held = result;
    pthread_spin_unlock(&lock);
    finish(start(attempt));
    printf("%s %s\n", held == EBUSY ? "busy" : "?", result == 0 ? "ok" : "?");
    return 0;
}
