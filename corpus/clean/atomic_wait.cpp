/* C++20 atomic::wait and notify as a turnstile: two threads alternate over one plain variable. Clean: each turn is released by a store and acquired by the wait. */
#include "corpus.h"
#include <atomic>
#include <thread>

int main() {
    std::atomic<int> turn_of{0};
    int value = 0;
    auto play = [&](int me) {
        for (int round = 0; round < 5; round++) {
            for (int now = turn_of.load(); now != me; now = turn_of.load()) turn_of.wait(now);
            value = value * 2 + me;
            turn_of.store(1 - me);
            turn_of.notify_one();
        }
    };
    std::thread a(play, 0), b(play, 1);
    a.join(), b.join();
    printf("%d\n", value);
}
