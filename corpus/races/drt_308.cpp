/* 308: double-checked locking of a member of an object, in C++: the flag is read outside the mutex that its writer holds. */
#include "corpus.h"
#include <mutex>

class Lazy {
    std::mutex m;
    volatile bool ready = false;
    int value = 0;

  public:
    int get() {
        if (!ready) { // RACE:ready:B
            std::lock_guard<std::mutex> guard(m);
            if (!ready) {
                value = 42;   // RACE:value:A
                ready = true; // RACE:ready:A
            }
        }
        return value; // RACE:value:B
    }
};

static Lazy lazy;

static void first() { use(lazy.get()); }
static void second() {
    turn(1);
    use(lazy.get());
}

int main() {
    RUN(first, second);
    printf("%d\n", lazy.get());
}
