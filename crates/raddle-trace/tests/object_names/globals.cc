#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#define SHOW(path) std::printf("data %p %zu %s\n", (void *)&(path), sizeof(path), #path)
#define SHOW_AS(path, text) std::printf("data %p %zu %s\n", (void *)&(path), sizeof(path), text)
#define TYPE(path, text) std::printf("type %p %s\n", (void *)&(path), text)

struct Empty {};

struct Named {
    long id;
    virtual ~Named() {}
};

struct Dated {
    short day, month;
};

struct Account : Empty, Named, Dated {
    int balance;
    std::mutex lock;
    std::vector<int> history;
    std::array<int, 3> limits;
    std::pair<int, char> last;
    static int created;
};

struct Guarded : std::mutex {
    int value;
};

int Account::created;

namespace bank {
int total;
std::atomic<long> hits;
Account accounts[2];
namespace {
int hidden;
}
inline namespace v1 {
int versioned;
}
class Vault {
  public:
    static int opened;
    int &reference() { return kept; }
    int kept = 1;
};
int Vault::opened;
Vault vault;
template <typename T> struct Box {
    T inside;
    static T shared;
};
template <typename T> T Box<T>::shared;
Box<Dated> box;
}  // namespace bank

std::map<int, int> table;
std::string text;
Guarded guarded;
std::mutex mutexes[2];
int &reference = bank::total;
thread_local int per_thread;
inline int inline_variable;

__attribute__((noinline)) int &next() {
    static int counter;
    counter++;
    SHOW(counter);
    return counter;
}

int main(int argc, char **) {
    SHOW(bank::total);
    SHOW(bank::hits);
    TYPE(bank::hits, "std::atomic<long int>|std::atomic<long>");
    SHOW_AS(bank::hidden, "bank::hidden");
    SHOW(bank::vault.kept);
    SHOW(bank::Vault::opened);
    SHOW(Account::created);
    SHOW(bank::accounts[1].balance);
    SHOW(bank::accounts[1].lock);
    TYPE(bank::accounts[1].lock, "std::mutex");
    SHOW(bank::accounts[0].history);
    SHOW(bank::accounts[1].limits[2]);
    SHOW(bank::accounts[1].last.second);
    SHOW(bank::accounts[1].id);
    SHOW(bank::accounts[1].month);
    SHOW(bank::box.inside.month);
    SHOW(table);
    SHOW(text);
    SHOW(guarded.value);
    SHOW_AS(static_cast<std::mutex &>(guarded), "guarded");
    SHOW(mutexes[1]);
    SHOW(inline_variable);
    bank::hidden += argc;
    reference += argc;
    per_thread += argc;
    inline_variable += argc;
    bank::Box<Dated>::shared.day += argc;
    SHOW_AS(bank::Box<Dated>::shared.day, "bank::Box<Dated>::shared.day");
    std::printf("tls %ld %zu %s\n", (long)((char *)&per_thread - (char *)__builtin_thread_pointer()),
                sizeof per_thread, "per_thread");
    return next() == 12345 + bank::hidden;
}
