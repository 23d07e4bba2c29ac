/* A spin lock, for an object that is never rebuilt. */
#include "plain_lock.h"
#include <sched.h>

void plain_acquire(struct plain_lock *lock) {
    while (__atomic_exchange_n(&lock->word, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

void plain_release(struct plain_lock *lock) { __atomic_store_n(&lock->word, 0, __ATOMIC_RELEASE); }
