// Every line that SHOW prints is an address, a size and the path that a programmer writes for it.
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#define SHOW(path) printf("data %p %zu %s\n", (void *)&(path), sizeof(path), #path)
#define SHOW_AS(path, text) printf("data %p %zu %s\n", (void *)&(path), sizeof(path), text)
#define THREAD(path) \
    printf("tls %ld %zu %s\n", (long)((char *)&(path) - (char *)__builtin_thread_pointer()), sizeof(path), #path)

typedef struct {
    int id;
    pthread_mutex_t lock;
    const volatile long uses;
} fork_t;

struct account {
    char name[8];
    int balance;
    struct {
        short day, month;
    } opened;
    struct {
        int anonymous_a;
        union {
            int as_int;
            float as_float;
            char bytes[12];
        };
    };
    struct account *next;
};

union value {
    double number;
    struct {
        int low, high;
    } halves;
    char text[16];
};

struct flags {
    unsigned first : 8;
    unsigned second : 8;
    unsigned third : 16;
    int after;
};

struct tail {
    int count;
    int items[];
};

fork_t forks[3];
struct account account, accounts[2][3];
static int grid[2][3][4];
union value value;
struct flags flags;
struct tail tail = {3, {1, 2, 3}};
static _Atomic int counter_of_all;
volatile const int limit = 3;
pthread_cond_t cond;
sem_t sem;
int *pointer = &grid[0][0][0];
pthread_rwlock_t rwlocks[2];
__thread int depth;
static __thread struct account cached[2];
enum color { RED, GREEN } color;

__attribute__((noinline)) int count(int by) {
    static int calls;
    static struct account mine;
    calls += by;
    mine.balance += by;
    SHOW(calls);
    SHOW(mine.balance);
    return calls + mine.balance;
}

__attribute__((noinline)) int count_too(int by) {
    static int calls;
    calls += by;
    SHOW(calls);
    return calls;
}

int main(int argc, char **argv) {
    (void)argv;
    SHOW(forks[0].id);
    SHOW(forks[1].lock);
    SHOW(forks[2].uses);
    SHOW(account.balance);
    SHOW(account.name[3]);
    SHOW(account.opened.month);
    SHOW(account.anonymous_a);
    SHOW(account.as_int);
    SHOW_AS(account.bytes[4], "account.bytes[4]");
    SHOW(account.next);
    SHOW(accounts[1][2].opened.day);
    SHOW(grid[1][2][3]);
    SHOW(grid[0][1][0]);
    SHOW(value.number);
    SHOW(value.text[9]);
    SHOW(flags.after);
    SHOW_AS(((char *)&flags)[0], "flags.first");
    SHOW_AS(((char *)&flags)[1], "flags.second");
    SHOW_AS(((char *)&flags)[3], "flags.third");
    SHOW(tail.count);
    SHOW(tail.items[2]);
    SHOW(counter_of_all);
    SHOW(limit);
    SHOW(cond);
    SHOW(sem);
    SHOW(pointer);
    SHOW(rwlocks[1]);
    SHOW(color);
    THREAD(depth);
    THREAD(cached[1].balance);
    THREAD(cached[0].next);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) {
            char path[64];
            snprintf(path, sizeof path, "accounts[%d][%d].opened.month", i, j);
            SHOW_AS(accounts[i][j].opened.month, path);
        }
    printf("access %p 4 value.halves.low\n", (void *)&value);
    printf("access %p 8 value.number\n", (void *)&value);
    printf("access %p 1 value.text[0]\n", (void *)&value);
    depth += argc;
    cached[1].balance += argc;
    grid[1][2][3] += argc;
    return count(argc) + count_too(argc) == 12345 + *pointer;
}
