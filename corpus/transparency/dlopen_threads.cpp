/* dlopen of an instrumented C++ library while threads run; calls into it from several threads; an exception crosses the border; a second open and close. */
#include "corpus.h"
#include <dlfcn.h>
#include <stdexcept>
#include <thread>

int main() {
    void *library = dlopen("./libplug.so", RTLD_NOW | RTLD_LOCAL);
    MUST(library);
    auto work = reinterpret_cast<int (*)(int)>(dlsym(library, "plug_work"));
    auto balance = reinterpret_cast<int (*)()>(dlsym(library, "plug_balance"));
    MUST(work && balance);
    int first = 0, caught = 0;
    std::thread a([&] { first = work(3); });
    std::thread b([&] {
        try {
            work(-1);
        } catch (const std::runtime_error &) {
            caught = 1;
        }
    });
    a.join(), b.join();
    void *again = dlopen("./libplug.so", RTLD_NOW);
    dlclose(again);
    printf("%d %d %d\n", first, caught, balance());
}
