/* std::shared_ptr copied and dropped by several threads; the last one destroys the object. Clean: the counter's last decrement acquires all others.
 * The library does it with a fence or with instrumented headers, depending on the version. */
#include "corpus.h"
#include <memory>
#include <thread>
#include <vector>

static int destroyed;

struct Node {
    int value = 1;
    ~Node() { destroyed += value; }
};

int main() {
    auto shared = std::make_shared<Node>();
    std::shared_ptr<Node> separate(new Node);
    std::weak_ptr<Node> weak = shared;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([copy = shared, other = separate, weak]() mutable {
            use(copy->value + other->value);
            if (auto again = weak.lock()) use(again->value);
            copy.reset();
            other.reset();
        });
    shared.reset();
    separate.reset();
    for (auto &thread : threads) thread.join();
    threads.clear();
    printf("%d %d\n", destroyed, weak.expired());
}
