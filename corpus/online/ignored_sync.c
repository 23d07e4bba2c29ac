/* Two threads pass a message by an atomic flag, but the program says that its synchronisation is to be ignored around the flag. Wrong: then nothing orders the message.
   Correct: it does not say so. */
#include "corpus.h"

extern void AnnotateIgnoreSyncBegin(const char *, int) __attribute__((weak));
extern void AnnotateIgnoreSyncEnd(const char *, int) __attribute__((weak));
static int flag, message;

static void ignore(int begin) {
#ifdef WRONG
    void (*say)(const char *, int) = begin ? AnnotateIgnoreSyncBegin : AnnotateIgnoreSyncEnd;
    if (say) say(__FILE__, __LINE__);
#else
    (void)begin;
#endif
}

static void sender(void) {
    message = 1; // RACE:message:A
    ignore(1);
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    ignore(0);
}

static void receiver(void) {
    turn(1);
    while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE)) continue;
    use(message); // RACE:message:B
}

int main(void) {
    RUN(sender, receiver);
    return 0;
}
