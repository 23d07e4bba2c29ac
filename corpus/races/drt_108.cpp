/* 108: a function-local static object, made by whoever comes first. Clean: the language guards the initialisation. */
#include "corpus.h"

struct Foo {
    int a;
    Foo() : a(42) {}
};

static const Foo *get_foo() {
    static const Foo *foo = new Foo;
    return foo;
}

static void first() { get_foo(); }
static void later() {
    turn(1);
    use(get_foo()->a);
}

int main() {
    RUN(first, later, later);
    printf("%d\n", get_foo()->a);
    delete get_foo();
}
