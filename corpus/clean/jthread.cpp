/* jthread, stop_token and condition_variable_any with a stop token. Clean: the stop state is atomic, the rest is under the mutex or ordered by the join. */
#include "corpus.h"
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

int main() {
    std::mutex m;
    std::condition_variable_any c;
    int processed = 0, waiting = 3;
    {
        std::jthread worker([&](std::stop_token token) {
            std::unique_lock<std::mutex> guard(m);
            while (c.wait(guard, token, [&] { return waiting > 0; })) {
                waiting--;
                processed++;
            }
        });
        for (bool empty = false; !empty;) {
            usleep(1000);
            std::lock_guard<std::mutex> guard(m);
            empty = waiting == 0;
        }
    }
    printf("%d %d\n", processed, waiting);
}
