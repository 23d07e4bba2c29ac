/* An exception is caught in one thread and rethrown in two others through exception_ptr and a future; the last owner frees it. Clean: its reference count is atomic inside the
 * language library, which no instrumentation sees. */
#include "corpus.h"
#include <exception>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>

static size_t length_of(std::exception_ptr pointer) {
    try {
        std::rethrow_exception(pointer);
    } catch (const std::runtime_error &error) {
        return std::string(error.what()).size();
    }
    return 0;
}

int main() {
    std::promise<std::exception_ptr> promise;
    auto future = promise.get_future().share();
    size_t a = 0, b = 0;
    std::thread first([&] { a = length_of(future.get()); });
    std::thread second([&] { b = length_of(future.get()); });
    std::thread thrower([&] {
        try {
            throw std::runtime_error("a message of some length");
        } catch (...) {
            promise.set_value(std::current_exception());
        }
    });
    first.join(), second.join(), thrower.join();
    printf("%zu %zu\n", a, b);
}
