/* std::atomic::wait and notify: an int (a futex word), a bool (waits through a proxy) and atomic_flag. Clean: the store is a release, the wait ends with an acquire load. */
#include "corpus.h"
#include <atomic>
#include <thread>

int main() {
    std::atomic<int> word{0};
    std::atomic<bool> small{false};
    std::atomic_flag flag = ATOMIC_FLAG_INIT;
    int data = 0;
    std::thread waiter([&] {
        word.wait(0);
        data++;
        small.store(true);
        small.notify_one();
        flag.wait(false);
        data++;
    });
    turn(1);
    data = 10;
    word.store(1);
    word.notify_all();
    small.wait(false);
    data += 100;
    flag.test_and_set();
    flag.notify_one();
    waiter.join();
    printf("%d\n", data);
}
