// For each place: a return address, the normal name of the function, the line of its declaration.
#include <algorithm>
#include <cstdio>

#define NOINLINE __attribute__((noinline))

NOINLINE int place(const char *function, int line) {
    std::printf("frame %p %d %s\n", __builtin_return_address(0), line, function);
    return line;
}

namespace bank {
struct Teller {
    NOINLINE int serve(int customer);
};

NOINLINE int Teller::serve(int customer) {
    int served = place("bank::Teller::serve(int)", __LINE__ - 1);
    return served + customer;
}

NOINLINE static int open(int day) {
    return 1 +
           place("bank::open(int)", __LINE__ - 2) +
           day;
}
}  // namespace bank

int main(int argc, char **) {
    struct Local {
        NOINLINE int run(int by) { return by + place("main::Local::run(int)", __LINE__); }
    };
    auto lambda = [argc]() NOINLINE { return argc + place("main::{lambda#1}", __LINE__); };
    bank::Teller teller;
    int sum = lambda() + Local().run(argc) + teller.serve(argc) + bank::open(argc);
    int values[4] = {4, 2, argc, 1};
    std::for_each(values, values + 4, [&sum](int value) { sum += value + place("main::{lambda#2}", __LINE__); });
    auto outer = [&sum](int by) NOINLINE {
        auto inner = [by]() NOINLINE { return place("main::{lambda#3}::{lambda#1}", __LINE__) + by; };
        return inner() + sum;
    };
    return outer(sum) == 12345;
}
