/* 116: each thread copies a string that was made before it started, changes its copy and drops it. Clean: the original is only read. */
#include "corpus.h"
#include <string>

static const std::string original = "a string that is too long to be stored inside the object itself";
static int lengths[3];

static void *worker(void *argument) {
    long me = (long)argument;
    for (int i = 0; i < 3; i++) {
        std::string copy = original;
        copy += std::to_string(me);
        lengths[me] = (int)copy.size();
    }
    return nullptr;
}

int main() {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) threads[i] = start_with(worker, (void *)i);
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        finish(threads[i]);
        sum += lengths[i];
    }
    printf("%d\n", sum);
}
