// A task queue in C++ that loses its wake-up call.
//
//   raddle hunt examples/tasks.cpp
//
// The worker sleeps when the queue is empty; `add` wakes it. But the emptiness is checked before the lock is taken, so the
// wake-up can fall between the check and the wait and is lost: the worker sleeps for ever and main waits for it.
// In a plain run the worker is asleep long before the first task comes, and all is well.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <unistd.h>

class Tasks {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<std::function<void()>> waiting;

    bool empty() {
        std::lock_guard<std::mutex> guard(lock);
        return waiting.empty();
    }

  public:
    void add(std::function<void()> task) {
        std::lock_guard<std::mutex> guard(lock);
        waiting.push_back(std::move(task));
        changed.notify_one();
    }

    void run_one() {
        if (empty()) {
            std::unique_lock<std::mutex> guard(lock);
            changed.wait(guard); // no condition: a wake-up that came just before is gone
        }
        std::function<void()> task;
        {
            std::lock_guard<std::mutex> guard(lock);
            task = std::move(waiting.front());
            waiting.pop_front();
        }
        task();
    }
};

int main() {
    Tasks tasks;
    int done = 0;
    std::thread worker([&] { tasks.run_one(); });
    usleep(50000);
    tasks.add([&] { done = 1; });
    worker.join();
    std::printf("done %d\n", done);
}
