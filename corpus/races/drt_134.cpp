/* 134: swap, the other way round: a thread fills a vector of its own and swaps it in under the mutex; the old one is read outside. Clean. */
#include "corpus.h"
#include <vector>

MUTEX(m);
static std::vector<int> shared(3, 1);
static int seen[2];

static void *swapper(void *argument) {
    long me = (long)argument;
    std::vector<int> mine(4, (int)me + 10);
    LOCK(m);
    mine.swap(shared);
    UNLOCK(m);
    for (int value : mine) seen[me] += value;
    return nullptr;
}

int main() {
    pthread_t a = start_with(swapper, (void *)0);
    turn(1);
    pthread_t b = start_with(swapper, (void *)1);
    finish(a), finish(b);
    printf("%d %d %d\n", seen[0], seen[1], shared[0]);
}
