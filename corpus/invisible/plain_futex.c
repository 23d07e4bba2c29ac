/* Drepper's futex lock (0 free, 1 taken, 2 taken and waited for), for an object that is never rebuilt. The system call is an instruction and not
 * a call of the C library, so that nothing can stand before it. */
#include "plain_lock.h"

static long futex(int *word, int operation, int value) {
    long result;
    register long timeout __asm__("r10") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(202L), "D"(word), "S"((long)operation), "d"((long)value), "r"(timeout)
                     : "rcx", "r11", "memory");
    return result;
}

void plain_acquire(struct plain_lock *lock) {
    int seen = 0;
    if (__atomic_compare_exchange_n(&lock->word, &seen, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    if (seen != 2) seen = __atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE);
    while (seen) {
        futex(&lock->word, 128, 2);
        seen = __atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE);
    }
}

void plain_release(struct plain_lock *lock) {
    if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2) futex(&lock->word, 129, 1);
}
