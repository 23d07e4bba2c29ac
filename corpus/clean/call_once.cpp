/* std::call_once: four threads, one initialiser that fills a table, all read it afterwards. Clean. */
#include "corpus.h"
#include <mutex>
#include <thread>
#include <vector>

static std::once_flag once;
static std::vector<int> table;

int main() {
    int sums[4] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&sums, i] {
            std::call_once(once, [] {
                for (int k = 0; k < 10; k++) table.push_back(k);
            });
            for (int value : table) sums[i] += value;
        });
    for (auto &thread : threads) thread.join();
    printf("%d %d %d %d\n", sums[0], sums[1], sums[2], sums[3]);
}
