/* A virtual call races with the destructor of the base class, which puts the base's virtual table pointer in place before its body waits for
 * the caller to be done. The semaphore orders the end of the call before the rest of the destructor, but not before that first store. */
#include "corpus.h"
#include <new>
#include <semaphore.h>

static sem_t called;
static int calls;

struct Base {
    virtual ~Base() { // RACE:vptr:B
        sem_wait(&called);
    }
    virtual void speak() { calls += 100; }
};

struct Derived : Base {
    void speak() override { calls++; }
};

static Base *object;

static void caller() {
    object->speak(); // RACE:vptr:A
    sem_post(&called);
}

static void destroyer() {
    turn(1);
    object->~Base();
}

int main() {
    sem_init(&called, 0, 0);
    alignas(Derived) static char room[sizeof(Derived)];
    object = new (room) Derived;
    RUN(caller, destroyer);
    printf("%d\n", calls);
}
