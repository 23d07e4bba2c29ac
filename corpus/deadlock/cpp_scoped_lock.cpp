/* std::scoped_lock over two mutexes named in opposite orders: its try-and-back-off algorithm cannot deadlock. */
#include "corpus.h"
#include <mutex>
#include <thread>

static std::mutex a, b;
static int rounds;

int main() {
    std::thread t1([] {
        std::scoped_lock both(a, b);
        rounds++;
    });
    std::thread t2([] {
        turn(1);
        std::scoped_lock both(b, a);
        rounds++;
    });
    t1.join();
    t2.join();
    printf("%d\n", rounds);
}
