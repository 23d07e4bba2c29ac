/* An exception that leaves a thread's function ends the process by std::terminate and SIGABRT. What was recorded and reported before must survive. */
#include "corpus.h"
#include <mutex>
#include <stdexcept>
#include <thread>

static std::mutex m;
static int value;

int main() {
    std::thread thread([] {
        {
            std::lock_guard<std::mutex> guard(m);
            value++;
        }
        printf("about to throw\n");
        fflush(stdout);
        throw std::runtime_error("nobody catches this");
    });
    thread.join();
}
