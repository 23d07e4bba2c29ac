/* std::timed_mutex (try_lock_for, try_lock_until), std::recursive_mutex and std::recursive_timed_mutex. Joins keep the mutex held during the failing attempts. */
#include "corpus.h"
#include <chrono>
#include <mutex>
#include <thread>

using namespace std::chrono;
static std::timed_mutex m;
static std::recursive_mutex r;
static std::recursive_timed_mutex rt;

static int depth(int n) {
    std::lock_guard<std::recursive_mutex> guard(r);
    return n == 0 ? 0 : 1 + depth(n - 1);
}

int main() {
    bool for_failed, until_failed, for_took;
    m.lock();
    std::thread([&] {
        for_failed = !m.try_lock_for(milliseconds(4));
        until_failed = !m.try_lock_until(system_clock::now() + milliseconds(4));
    }).join();
    m.unlock();
    for_took = m.try_lock_for(seconds(1));
    m.unlock();
    std::thread other([] { depth(3); });
    int deep = depth(5);
    other.join();
    rt.lock();
    bool again = rt.try_lock_for(milliseconds(4));
    rt.unlock();
    rt.unlock();
    printf("%d %d %d %d %d\n", for_failed, until_failed, for_took, deep, again);
}
