/* The same two mutexes by nested lock_guards in opposite orders: AB-BA in C++ dress. */
#include "corpus.h"
#include <mutex>
#include <thread>

static std::mutex a, b;
static int rounds;

int main() {
    std::thread t1([] {
        std::lock_guard<std::mutex> first(a);
        std::lock_guard<std::mutex> second(b); // DEADLOCK:1
        rounds++;
    });
    std::thread t2([] {
        turn(1);
        std::lock_guard<std::mutex> first(b);
        std::lock_guard<std::mutex> second(a); // DEADLOCK:2
        rounds++;
    });
    t1.join();
    t2.join();
    printf("%d\n", rounds);
}
