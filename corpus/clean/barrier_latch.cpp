/* C++20 barrier with arrive_and_drop and a completion step, and a latch that main waits for. Clean. */
#include "corpus.h"
#include <barrier>
#include <latch>
#include <thread>
#include <vector>

int main() {
    constexpr int threads_count = 3;
    std::latch finished(threads_count);
    int cells[threads_count] = {}, total = 0;
    auto add_up = [&]() noexcept {
        for (int cell : cells) total += cell;
    };
    std::barrier rounds(threads_count, add_up);
    std::vector<std::jthread> threads;
    for (int me = 0; me < threads_count; me++)
        threads.emplace_back([&, me] {
            for (int round = 0; round < 3; round++) {
                cells[me]++;
                rounds.arrive_and_wait();
            }
            rounds.arrive_and_drop();
            finished.count_down();
        });
    finished.wait();
    printf("%d\n", cells[0] + cells[1] + cells[2]);
    threads.clear();
    printf("%d\n", total);
}
