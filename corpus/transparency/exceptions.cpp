/* Exceptions in several threads at once: thrown through frames with destructors and locks, caught, rethrown across threads by exception_ptr.
 * Clean: every guard is released on the way; the exception object is handed over through the join. */
#include "corpus.h"
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

static std::mutex m;
static int balance, unwound;

struct Frame {
    ~Frame() {
        std::lock_guard<std::mutex> guard(m);
        unwound++;
    }
};

static void deep(int level) {
    Frame frame;
    if (level == 0) throw std::runtime_error("bottom");
    deep(level - 1);
}

static void risky() {
    for (int i = 0; i < 10; i++) {
        try {
            deep(3);
        } catch (const std::exception &) {
            std::lock_guard<std::mutex> guard(m);
            balance++;
        }
    }
}

int main() {
    std::exception_ptr carried;
    std::thread a(risky), b(risky), c([&carried] {
        try {
            deep(1);
        } catch (...) {
            carried = std::current_exception();
        }
    });
    a.join(), b.join(), c.join();
    std::string text = "none";
    try {
        std::rethrow_exception(carried);
    } catch (const std::runtime_error &error) {
        text = error.what();
    }
    printf("%d %d %s\n", balance, unwound, text.c_str());
}
