/* 79: a map is swapped with an empty one under the mutex and emptied outside it. Clean: after the swap nobody else can reach the old contents. */
#include "corpus.h"
#include <map>

MUTEX(m);
static std::map<int, int> shared;
static int taken[2];

static void adder() {
    for (int i = 0; i < 4; i++) {
        LOCK(m);
        shared[i]++;
        UNLOCK(m);
    }
}

static void *taker(void *slot) {
    turn(1);
    std::map<int, int> mine;
    LOCK(m);
    mine.swap(shared);
    UNLOCK(m);
    for (auto &entry : mine) *static_cast<int *>(slot) += entry.second;
    return nullptr;
}

int main() {
    pthread_t a = start(adder), b = start(adder), c = start_with(taker, &taken[0]), d = start_with(taker, &taken[1]);
    finish(a), finish(b), finish(c), finish(d);
    for (auto &entry : shared) taken[0] += entry.second;
    printf("%d\n", taken[0] + taken[1]);
}
