/* Events that the program itself announces, and a marked atomic region, through raddle.h where it is installed.
 * Without the header the macros vanish and the program is the same. */
#include "corpus.h"
#if defined(__has_include)
#if __has_include(<raddle.h>)
#include <raddle.h>
#endif
#endif
#ifndef RADDLE_EVENT
#define RADDLE_EVENT(name, object) ((void)0)
#define RADDLE_ATOMIC_BEGIN(name) ((void)0)
#define RADDLE_ATOMIC_END(name) ((void)0)
#endif

MUTEX(m);
static int account;

static void deposit(void) {
    RADDLE_EVENT("deposit", &account);
    RADDLE_ATOMIC_BEGIN("deposit");
    LOCK(m);
    account += 5;
    UNLOCK(m);
    RADDLE_ATOMIC_END("deposit");
}

int main(void) {
    RUN(deposit, deposit);
    printf("%d\n", account);
    return 0;
}
