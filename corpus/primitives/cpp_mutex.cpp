/* std::mutex with lock_guard, unique_lock, scoped_lock over two mutexes, and try_lock failing and succeeding. Clean: one mutex guards the counter. */
#include "corpus.h"
#include <mutex>
#include <thread>

static std::mutex m, n;
static int counter;

static void count() {
    for (int i = 0; i < 20; i++) {
        std::lock_guard<std::mutex> guard(m);
        counter++;
    }
    std::scoped_lock both(m, n);
    counter++;
}

int main() {
    std::thread a(count), b(count);
    a.join();
    b.join();
    bool held, free_now;
    {
        std::unique_lock<std::mutex> guard(m);
        std::thread([&held] { held = m.try_lock(); }).join();
    }
    free_now = m.try_lock();
    m.unlock();
    printf("%d %d %d\n", counter, held, free_now);
}
