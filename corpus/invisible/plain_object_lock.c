/* A counter under a spin lock whose functions are in an object that was built by the plain compiler. Correct. */
#include "corpus.h"
#include "plain_lock.h"

static struct plain_lock lock;
static long counter;

static void worker(void) {
    for (int i = 0; i < 100; i++) {
        plain_acquire(&lock);
        counter++;
        plain_release(&lock);
    }
}

int main(void) {
    RUN(worker, worker);
    printf("%ld\n", counter);
    return 0;
}
