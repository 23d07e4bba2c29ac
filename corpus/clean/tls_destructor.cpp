/* A thread-local object's destructor writes a plain result that the joining thread reads. Clean: destructors belong to the thread and end before the join returns. */
#include "corpus.h"
#include <thread>

static int results[2];

struct Finisher {
    int slot = -1, sum = 0;
    ~Finisher() {
        if (slot >= 0) results[slot] = sum;
    }
};
static thread_local Finisher finisher;

int main() {
    auto work = [](int slot) {
        finisher.slot = slot;
        for (int i = 0; i < 5; i++) finisher.sum += i + slot;
    };
    std::thread a(work, 0), b(work, 1);
    a.join(), b.join();
    printf("%d %d\n", results[0], results[1]);
}
