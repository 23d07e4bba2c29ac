/* std::shared_mutex and std::shared_timed_mutex: shared, exclusive, try and timed forms. Clean: writes hold it exclusively. */
#include "corpus.h"
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::shared_mutex m;
static std::shared_timed_mutex tm_;
static int value;

int main() {
    auto write = [] {
        for (int i = 0; i < 10; i++) {
            std::unique_lock<std::shared_mutex> guard(m);
            value++;
        }
    };
    auto read = [] {
        for (int i = 0; i < 10; i++) {
            std::shared_lock<std::shared_mutex> guard(m);
            use(value);
        }
    };
    std::thread a(write), b(write), c(read), d(read);
    a.join(), b.join(), c.join(), d.join();
    bool shared_failed, exclusive_failed;
    tm_.lock();
    std::thread([&] {
        shared_failed = !tm_.try_lock_shared_for(std::chrono::milliseconds(4));
        exclusive_failed = !tm_.try_lock();
    }).join();
    tm_.unlock();
    printf("%d %d %d\n", value, shared_failed, exclusive_failed);
}
