/* libstdc++ checks an index and aborts: the report has the condition that it names. */
#include "corpus.h"
#include <thread>
#include <vector>

static volatile unsigned long index_of_nobody = 7;

int main() {
    std::thread thread([] {
        std::vector<int> numbers(3);
        use(numbers[index_of_nobody]); // CRASH
    });
    thread.join();
}
