/* The library of dlopen_threads.cpp: it has a static object, a thread of its own, throws to its caller and runs thread-local destructors. */
#include <mutex>
#include <stdexcept>
#include <thread>

static std::mutex m;
static int balance = 1;

struct Greeter {
    int value;
    Greeter() : value(40) {}
};
static Greeter greeter;

struct Local {
    ~Local() {
        std::lock_guard<std::mutex> guard(m);
        balance += 100;
    }
};
static thread_local Local local;

extern "C" int plug_work(int amount) {
    (void)&local;
    std::thread helper([amount] {
        std::lock_guard<std::mutex> guard(m);
        balance += amount;
    });
    helper.join();
    if (amount < 0) throw std::runtime_error("negative");
    return greeter.value;
}

extern "C" int plug_balance() {
    std::lock_guard<std::mutex> guard(m);
    return balance;
}
