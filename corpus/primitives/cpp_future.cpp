/* std::async (both policies), std::promise, std::packaged_task, shared_future, wait_for, and an exception through a future.
 * Clean: a future's get happens after its promise is set. */
#include "corpus.h"
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

int main() {
    int plain = 1;
    auto eager = std::async(std::launch::async, [&plain] { return ++plain; });
    auto lazy = std::async(std::launch::deferred, [] { return 10; });
    int sum = eager.get() + lazy.get();
    std::promise<int> promise;
    std::shared_future<int> shared = promise.get_future().share();
    bool early = shared.wait_for(std::chrono::milliseconds(2)) == std::future_status::timeout;
    std::thread reader([shared, &sum] { sum += shared.get(); });
    promise.set_value(100);
    reader.join();
    std::packaged_task<int(int)> task([](int n) { return n * 2; });
    auto doubled = task.get_future();
    std::thread runner(std::move(task), 500);
    sum += doubled.get();
    runner.join();
    auto failing = std::async(std::launch::async, []() -> int { throw std::runtime_error("lost"); });
    const char *message = "none";
    try {
        failing.get();
    } catch (const std::runtime_error &) {
        message = "caught";
    }
    printf("%d %d %s\n", sum, early, message);
}
