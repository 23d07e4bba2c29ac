#include "counter.h"

#include <iostream>
#include <thread>
#include <vector>

int main() {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([] {
            for (int i = 0; i < 50; i++) counter_add(1);
        });
    for (auto &thread : threads) thread.join();
    std::cout << label() << " " << counter_value() << std::endl;
    return 0;
}
