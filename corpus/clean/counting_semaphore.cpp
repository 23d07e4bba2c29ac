/* C++20 counting_semaphore as the two ends of a bounded buffer. Clean. */
#include "corpus.h"
#include <semaphore>
#include <thread>

int main() {
    std::counting_semaphore<2> room(2), items(0);
    int ring[2] = {}, sum = 0;
    std::thread producer([&] {
        for (int i = 0; i < 10; i++) {
            room.acquire();
            ring[i % 2] = i;
            items.release();
        }
    });
    std::thread consumer([&] {
        for (int i = 0; i < 10; i++) {
            items.acquire();
            sum += ring[i % 2];
            room.release();
        }
    });
    producer.join(), consumer.join();
    printf("%d\n", sum);
}
