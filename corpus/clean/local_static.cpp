/* Function-local statics, of a class with a destructor and of a template, used by all threads. Clean: guarded initialisation, reads afterwards. */
#include "corpus.h"
#include <string>
#include <thread>
#include <vector>

template <int N> const std::string &name() {
    static const std::string text(40, (char)('a' + N));
    return text;
}

int main() {
    std::vector<std::thread> threads;
    size_t lengths[3] = {};
    for (int i = 0; i < 3; i++) threads.emplace_back([&lengths, i] { lengths[i] = name<0>().size() + name<1>().size() + name<2>().find('c'); });
    for (auto &thread : threads) thread.join();
    printf("%zu %zu %zu\n", lengths[0], lengths[1], lengths[2]);
}
