/* An annotated lock needs no constructor; the constructor that says so runs after the first use. Clean: it must not make the lock forget. */
#include "corpus.h"

extern void __tsan_mutex_create(void *, unsigned) __attribute__((weak));
extern void __tsan_mutex_pre_lock(void *, unsigned) __attribute__((weak));
extern void __tsan_mutex_post_lock(void *, unsigned, int) __attribute__((weak));
extern int __tsan_mutex_pre_unlock(void *, unsigned) __attribute__((weak));
extern void __tsan_mutex_post_unlock(void *, unsigned) __attribute__((weak));
extern void __tsan_mutex_destroy(void *, unsigned) __attribute__((weak));
enum { LINKER_INIT = 1 };
static int word, inside, value;

static void lock(void) {
    if (__tsan_mutex_pre_lock) __tsan_mutex_pre_lock(&word, 0);
    while (__atomic_exchange_n(&word, 1, __ATOMIC_ACQUIRE)) continue;
    inside++;
    if (__tsan_mutex_post_lock) __tsan_mutex_post_lock(&word, 0, 0);
}

static void unlock(void) {
    if (__tsan_mutex_pre_unlock) __tsan_mutex_pre_unlock(&word, 0);
    __atomic_store_n(&word, 0, __ATOMIC_RELEASE);
    if (__tsan_mutex_post_unlock) __tsan_mutex_post_unlock(&word, 0);
}

static void first(void) {
    lock();
    value++; // RACE:value:A
    unlock();
}

static void second(void) {
    turn(1);
    if (__tsan_mutex_create) __tsan_mutex_create(&word, LINKER_INIT);
#ifdef WRONG
    value++; // RACE:value:B
#endif
    lock();
    value++;
    unlock();
    if (__tsan_mutex_destroy) __tsan_mutex_destroy(&word, LINKER_INIT);
}

int main(void) {
    RUN(first, second);
    return 0;
}
