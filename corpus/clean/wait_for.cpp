/* condition_variable::wait_for and wait_until in a loop that times out a few times before the data comes. Clean: each wake-up holds the mutex again, which a tool that does not
 * know the clock variants of the wait forgets. */
#include "corpus.h"
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

using namespace std::chrono;
static std::mutex m;
static std::condition_variable c;
static int data;
static bool ready;

int main() {
    std::thread waiter([] {
        std::unique_lock<std::mutex> guard(m);
        while (!c.wait_for(guard, milliseconds(5), [] { return ready; })) data += 0;
        data++;
        c.wait_until(guard, system_clock::now() + milliseconds(3), [] { return false; });
        data++;
    });
    turn(1);
    {
        std::lock_guard<std::mutex> guard(m);
        data = 10;
        ready = true;
    }
    c.notify_one();
    waiter.join();
    printf("%d\n", data);
}
