// Lazily loaded settings in C++: the well-known broken double check.
//
//   raddle hunt examples/settings.cpp      or, while it runs:      raddle run examples/settings.cpp
//
// `get` looks at `loaded` without the lock, to be quick. Another thread may be writing it at that moment, and even if the
// flag is seen, nothing says that the settings themselves are. The cure is std::call_once or an atomic flag.
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>

static std::mutex lock;
static bool loaded;
static std::map<std::string, int> settings;

static int get(const std::string &name) {
    if (!loaded) {
        std::lock_guard<std::mutex> guard(lock);
        if (!loaded) {
            settings["width"] = 80;
            settings["height"] = 24;
            loaded = true;
        }
    }
    return settings.at(name);
}

int main() {
    int width = 0, height = 0;
    std::thread first([&] { width = get("width"); });
    std::thread second([&] {
        usleep(50000);
        height = get("height");
    });
    first.join();
    second.join();
    std::printf("%d x %d\n", width, height);
}
