/* std::jthread with a stop token: joined by its destructor, stopped by request, with a stop callback. Clean: ordered by the join. */
#include "corpus.h"
#include <atomic>
#include <stop_token>
#include <thread>

int main() {
    int rounds = 0, ended = 0;
    std::atomic<int> callbacks{0};
    {
        std::jthread worker([&](std::stop_token token) {
            std::stop_callback note(token, [&] { callbacks++; });
            do rounds = 1, usleep(500);
            while (!token.stop_requested());
            ended = 1;
        });
        turn(1);
    }
    printf("%d %d %d\n", rounds, ended, callbacks.load());
}
