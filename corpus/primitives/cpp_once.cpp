/* std::call_once whose first attempt throws: the exception goes to the caller and the next caller tries again. Clean: once orders the initialiser. */
#include "corpus.h"
#include <mutex>
#include <stdexcept>
#include <thread>

static std::once_flag flag;
static int attempts, value;

static void initialise(bool fail) {
    attempts++;
    if (fail) throw std::runtime_error("not yet");
    value = 5;
}

int main() {
    bool thrown = false;
    try {
        std::call_once(flag, initialise, true);
    } catch (const std::runtime_error &) {
        thrown = true;
    }
    auto user = [] {
        std::call_once(flag, initialise, false);
        use(value);
    };
    std::thread a(user), b(user);
    a.join();
    b.join();
    printf("%d %d %d\n", thrown, attempts, value);
}
