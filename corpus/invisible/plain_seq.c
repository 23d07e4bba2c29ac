/* A sequence lock, for an object that is never rebuilt. The values are read and written by atomics that on x86 are plain moves. */
#include "plain_seq.h"

void plain_seq_write(struct plain_seq *seq, long a, long b) {
    unsigned version = seq->version;
    __atomic_store_n(&seq->version, version + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&seq->pair[0], a, __ATOMIC_RELAXED);
    __atomic_store_n(&seq->pair[1], b, __ATOMIC_RELAXED);
    __atomic_store_n(&seq->version, version + 2, __ATOMIC_RELEASE);
}

unsigned plain_seq_read(struct plain_seq *seq, long pair[2]) {
    unsigned version;
    do {
        version = __atomic_load_n(&seq->version, __ATOMIC_ACQUIRE);
        pair[0] = __atomic_load_n(&seq->pair[0], __ATOMIC_RELAXED);
        pair[1] = __atomic_load_n(&seq->pair[1], __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (version % 2 || version != __atomic_load_n(&seq->version, __ATOMIC_RELAXED));
    return version;
}
