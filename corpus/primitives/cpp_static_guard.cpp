/* A function-local static initialised by whichever of three threads comes first, and one whose first initialisation throws.
 * Clean: the language runtime's guard orders the constructor before every use. */
#include "corpus.h"
#include <stdexcept>
#include <thread>

static int constructed;

struct Config {
    int value;
    Config() : value(30) {
        constructed++;
        turn(1);
    }
};

static Config &config() {
    static Config instance;
    return instance;
}

static int moody(bool fail) {
    struct Thrower {
        explicit Thrower(bool f) {
            if (f) throw std::logic_error("no");
        }
    };
    static Thrower thrower(fail);
    return 1;
}

int main() {
    auto user = [] { use(config().value); };
    std::thread a(user), b(user), c(user);
    a.join(), b.join(), c.join();
    int failures = 0;
    try {
        moody(true);
    } catch (const std::logic_error &) {
        failures++;
    }
    printf("%d %d %d %d\n", constructed, config().value, failures, moody(false));
}
