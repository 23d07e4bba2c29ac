/* Annotations of the ThreadSanitizer interface and of the Annotate family, weakly declared: without a runtime they are absent and the calls are skipped.
 * The hand-over by a plain flag that they describe is guarded by a mutex as well, so the program is clean with and without them. */
#include "corpus.h"

#ifdef __cplusplus
extern "C" {
#endif
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);
__attribute__((weak)) void AnnotateHappensBefore(const char *file, int line, const volatile void *address);
__attribute__((weak)) void AnnotateHappensAfter(const char *file, int line, const volatile void *address);
__attribute__((weak)) void AnnotateThreadName(const char *file, int line, const char *name);
#ifdef __cplusplus
}
#endif

MUTEX(m);
static int flag, data;

static void giver(void) {
    if (AnnotateThreadName) AnnotateThreadName(__FILE__, __LINE__, "giver");
    data = 1;
    if (__tsan_release) __tsan_release(&flag);
    if (AnnotateHappensBefore) AnnotateHappensBefore(__FILE__, __LINE__, &flag);
    LOCK(m);
    flag = 1;
    UNLOCK(m);
}

static void taker(void) {
    for (int seen = 0; !seen;) {
        LOCK(m);
        seen = flag;
        UNLOCK(m);
        if (!seen) usleep(500);
    }
    if (__tsan_acquire) __tsan_acquire(&flag);
    if (AnnotateHappensAfter) AnnotateHappensAfter(__FILE__, __LINE__, &flag);
    data++;
}

int main(void) {
    RUN(giver, taker);
    printf("%d\n", data);
    return 0;
}
