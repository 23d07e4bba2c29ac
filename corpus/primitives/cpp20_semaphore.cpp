/* std::counting_semaphore and std::binary_semaphore: acquire, release, try_acquire and try_acquire_for failing. Clean: release happens before the acquire it feeds. */
#include "corpus.h"
#include <chrono>
#include <semaphore>
#include <thread>

int main() {
    std::counting_semaphore<4> items(0);
    std::binary_semaphore done(0);
    bool none = items.try_acquire(), late = items.try_acquire_for(std::chrono::milliseconds(3));
    int data = 0, sum = 0;
    std::thread consumer([&] {
        for (int i = 0; i < 3; i++) {
            items.acquire();
            sum += data;
            done.release();
        }
    });
    for (int i = 1; i <= 3; i++) {
        data = i;
        items.release();
        done.acquire();
    }
    consumer.join();
    printf("%d %d %d\n", none, late, sum);
}
