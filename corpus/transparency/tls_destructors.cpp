/* Thread-local objects whose destructors lock, allocate and touch other thread-locals while the thread ends, in C++ and through pthread keys.
 * Clean: they run inside the ending thread, before its join. */
#include "corpus.h"
#include <mutex>
#include <string>
#include <thread>

static std::mutex m;
static int lengths;
static pthread_key_t key;

struct Note {
    std::string text = "thread-local text that does not fit a small string";
    ~Note() {
        std::string copy = text + "!";
        std::lock_guard<std::mutex> guard(m);
        lengths += (int)copy.size();
    }
};

static thread_local Note note;

static void on_key(void *value) {
    std::lock_guard<std::mutex> guard(m);
    lengths += *static_cast<int *>(value);
    delete static_cast<int *>(value);
}

static void worker() {
    note.text += ".";
    pthread_setspecific(key, new int(1000));
}

int main() {
    pthread_key_create(&key, on_key);
    std::thread a(worker), b(worker), c(worker);
    a.join(), b.join(), c.join();
    std::lock_guard<std::mutex> guard(m);
    printf("%d\n", lengths);
}
