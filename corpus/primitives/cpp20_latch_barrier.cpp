/* std::latch opens once; std::barrier separates rounds and runs a completion function between them.
 * Clean: all three are built from acquire-release atomics that order the phases. */
#include "corpus.h"
#include <barrier>
#include <latch>
#include <thread>

int main() {
    int cells[3] = {}, sums[2] = {}, round = 0;
    std::latch start_line(3);
    auto complete = [&]() noexcept {
        sums[round] = cells[0] + cells[1] + cells[2];
        round++;
    };
    std::barrier barrier(3, complete);
    auto work = [&](int me) {
        start_line.arrive_and_wait();
        cells[me] = me + 1;
        barrier.arrive_and_wait();
        cells[me] += 10;
        barrier.arrive_and_wait();
    };
    std::thread a(work, 0), b(work, 1), c(work, 2);
    a.join(), b.join(), c.join();
    printf("%d %d %d\n", sums[0], sums[1], round);
}
