/* Two threads put freshly allocated objects into one set ordered by address and print them in that order: the output depends on where the allocator put them.
 * Replays only with a deterministic memory layout. */
#include "corpus.h"
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

static std::mutex m;
static std::set<std::string *> by_address;

int main() {
    auto work = [](char letter) {
        for (int i = 0; i < 5; i++) {
            auto *object = new std::string(40 + (size_t)i * 8, letter);
            std::lock_guard<std::mutex> guard(m);
            by_address.insert(object);
        }
    };
    std::thread a(work, 'a'), b(work, 'b');
    a.join(), b.join();
    for (auto *object : by_address) {
        printf("%c%zu ", (*object)[0], object->size());
        delete object;
    }
    printf("\n");
}
