/* Objects are made by one thread and deleted by another, through a queue under a mutex; their memory comes back for the next. Clean. */
#include "corpus.h"
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

int main() {
    std::mutex m;
    std::condition_variable c;
    std::deque<std::unique_ptr<int>> queue;
    int sum = 0;
    std::thread consumer([&] {
        for (int i = 0; i < 50; i++) {
            std::unique_lock<std::mutex> guard(m);
            c.wait(guard, [&] { return !queue.empty(); });
            auto item = std::move(queue.front());
            queue.pop_front();
            guard.unlock();
            sum += ++*item;
        }
    });
    for (int i = 0; i < 50; i++) {
        auto item = std::make_unique<int>(i);
        ++*item;
        std::lock_guard<std::mutex> guard(m);
        queue.push_back(std::move(item));
        c.notify_one();
    }
    consumer.join();
    printf("%d\n", sum);
}
