// For each variable on the stack: the return address of a call in its function, the frame, the address and the path.
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

struct pair {
    int first;
    struct {
        char name[4];
        long value;
    } second[2];
};

__attribute__((noinline)) void show(void *cfa, void *address, size_t size, const char *path) {
    printf("local %p %p %p %zu %s\n", __builtin_return_address(0), cfa, address, size, path);
}

#define LOCAL(path) show(__builtin_dwarf_cfa(), (void *)&(path), sizeof(path), #path)

__attribute__((noinline)) int work(int argument, struct pair by_value) {
    struct pair pair = {argument, {{"a", 1}, {"b", 2}}};
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int numbers[3] = {argument, 1, 2};
    LOCAL(argument);
    LOCAL(by_value.second[1].value);
    LOCAL(pair.first);
    LOCAL(pair.second[1].name[2]);
    LOCAL(lock);
    LOCAL(numbers[2]);
    for (int i = 0; i < 1; i++) {
        int inner = i + argument;
        LOCAL(i);
        LOCAL(inner);
        {
            long numbers = inner;
            LOCAL(numbers);
        }
    }
    return numbers[0] + pair.first;
}

int main(int argc, char **argv) {
    struct pair pair = {argc, {{"a", 1}, {"b", 2}}};
    LOCAL(pair.second[0].value);
    LOCAL(argv);
    return work(argc, pair) == 12345;
}
