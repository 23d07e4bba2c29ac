/* std::condition_variable with a predicate, wait_for that times out, and std::condition_variable_any over a shared_mutex. Clean: flags are guarded. */
#include "corpus.h"
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::mutex m;
static std::condition_variable c;
static std::shared_mutex s;
static std::condition_variable_any any;
static bool ready, open_;
static int data;

int main() {
    std::thread waiter([] {
        std::unique_lock<std::mutex> guard(m);
        c.wait(guard, [] { return ready; });
        data++;
        std::shared_lock<std::shared_mutex> shared(s);
        any.wait(shared, [] { return open_; });
    });
    turn(1);
    {
        std::lock_guard<std::mutex> guard(m);
        data = 10;
        ready = true;
        c.notify_one();
    }
    turn(1);
    {
        std::lock_guard<std::shared_mutex> guard(s);
        open_ = true;
    }
    any.notify_all();
    waiter.join();
    std::unique_lock<std::mutex> guard(m);
    bool woke = c.wait_for(guard, std::chrono::milliseconds(4), [] { return false; });
    printf("%d %d\n", data, woke);
}
