/* Atomics of 1, 2, 4, 8 and 16 bytes: load, store, exchange, every fetch operation, compare-exchange failing and succeeding.
 * Clean: nothing but atomic accesses to shared locations. */
#include "corpus.h"
#include <stdatomic.h>
#include <stdint.h>

#define EXERCISE(name, type)                                             \
    static type name;                                                    \
    static void use_##name(void) {                                       \
        for (int i = 0; i < 4; i++) {                                    \
            __atomic_fetch_add(&name, 3, __ATOMIC_SEQ_CST);              \
            __atomic_fetch_sub(&name, 1, __ATOMIC_SEQ_CST);              \
            __atomic_fetch_or(&name, 0, __ATOMIC_SEQ_CST);               \
            __atomic_fetch_and(&name, (type)-1, __ATOMIC_SEQ_CST);       \
            __atomic_fetch_xor(&name, 0, __ATOMIC_SEQ_CST);              \
            type seen = __atomic_load_n(&name, __ATOMIC_SEQ_CST);        \
            while (!__atomic_compare_exchange_n(&name, &seen, (type)(seen + 1), 1, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {} \
            type wrong = 111;                                            \
            MUST(!__atomic_compare_exchange_n(&name, &wrong, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
        }                                                                \
    }

EXERCISE(one, uint8_t)
EXERCISE(two, uint16_t)
EXERCISE(four, uint32_t)
EXERCISE(eight, uint64_t)
EXERCISE(sixteen, unsigned __int128)

static void worker(void) {
    use_one();
    use_two();
    use_four();
    use_eight();
    use_sixteen();
}

int main(void) {
    RUN(worker, worker);
    unsigned sum = (unsigned)one + two + four + (unsigned)eight + (unsigned)sixteen;
    __atomic_fetch_nand(&four, 0xff, __ATOMIC_SEQ_CST);
    __atomic_store_n(&two, 9, __ATOMIC_SEQ_CST);
    unsigned old = __atomic_exchange_n(&one, 1, __ATOMIC_SEQ_CST);
    printf("%u %u %u\n", sum, old, (unsigned)(uint8_t)four);
    return 0;
}
