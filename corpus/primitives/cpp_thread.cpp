/* std::thread: join, detach, arguments by value and by reference, move. Clean: ordered by start, join and a promise. */
#include "corpus.h"
#include <future>
#include <thread>
#include <vector>

static void add(int &to, int amount) { to += amount; }

int main() {
    int sum = 1;
    std::thread first(add, std::ref(sum), 2);
    std::thread moved = std::move(first);
    moved.join();
    std::promise<int> promise;
    std::thread([&promise] { promise.set_value(4); }).detach();
    sum += promise.get_future().get();
    std::vector<std::thread> many;
    int cells[4] = {};
    for (int i = 0; i < 4; i++) many.emplace_back([&cells, i] { cells[i] = i; });
    for (auto &thread : many) thread.join();
    printf("%d %d\n", sum, cells[0] + cells[1] + cells[2] + cells[3]);
}
