/* Phases of std::barrier, a std::latch and std::atomic::wait: the headers are rebuilt with the program, so all of it stays visible. Correct. */
#include "corpus.h"
#include <atomic>
#include <barrier>
#include <latch>
#include <thread>

static int parts[2], sums[2], announced;

int main() {
    std::barrier phase(2);
    std::latch done(2);
    std::atomic<int> ready{0};
    auto work = [&](int me) {
        parts[me] = me + 1;
        phase.arrive_and_wait();
        sums[me] = parts[0] + parts[1];
        done.count_down();
        ready.wait(0);
        sums[me] += announced;
    };
    std::thread a(work, 0), b(work, 1);
    done.wait();
    announced = 10;
    ready.store(1);
    ready.notify_all();
    a.join();
    b.join();
    std::printf("%d %d\n", sums[0], sums[1]);
    return 0;
}
