/* Two fibers of one thread and a second thread that runs one of them: fibers have a past of their own. Correct: the switch orders them. Wrong: it is said not to. */
#include "corpus.h"
#include <ucontext.h>
extern void *__tsan_get_current_fiber(void) __attribute__((weak));
extern void *__tsan_create_fiber(unsigned) __attribute__((weak));
extern void __tsan_destroy_fiber(void *) __attribute__((weak));
extern void __tsan_switch_to_fiber(void *, unsigned) __attribute__((weak));
#ifdef WRONG
enum { FLAGS = 1 };
#else
enum { FLAGS = 0 };
#endif
static ucontext_t main_context, fiber_context;
static void *main_fiber, *other_fiber;
static char stack[1 << 16];
static int value;

static void go_to(void *fiber) {
    if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(fiber, FLAGS);
}

static void body(void) {
    value++; // RACE:value:B
    go_to(main_fiber);
    swapcontext(&fiber_context, &main_context);
}

static void nothing(void) {}

int main(void) {
    pthread_t warm_up = start(nothing);
    finish(warm_up);
    if (__tsan_get_current_fiber) main_fiber = __tsan_get_current_fiber();
    if (__tsan_create_fiber) other_fiber = __tsan_create_fiber(0);
    getcontext(&fiber_context);
    fiber_context.uc_stack.ss_sp = stack;
    fiber_context.uc_stack.ss_size = sizeof stack;
    fiber_context.uc_link = &main_context;
    makecontext(&fiber_context, body, 0);
    value++; // RACE:value:A
    go_to(other_fiber);
    swapcontext(&main_context, &fiber_context);
    if (__tsan_destroy_fiber) __tsan_destroy_fiber(other_fiber);
    use(value);
    return 0;
}
