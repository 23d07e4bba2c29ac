/* What a program sees of its signal actions and alternate stacks is what it would see without a tool: the default action, no stack, and whatever it sets itself. */
#include "corpus.h"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static const int all[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
static volatile sig_atomic_t seen;

static void handler(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    ucontext_t *interrupted = context;
    seen += interrupted->uc_stack.ss_size == 0 && !interrupted->uc_stack.ss_sp;
}

/* How often the process or thread looks untouched. */
static int untouched(void) {
    int count = 0;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        struct sigaction action;
        memset(&action, 1, sizeof action);
        sigaction(all[i], NULL, &action);
        count += action.sa_handler == SIG_DFL && (action.sa_flags & (SA_SIGINFO | SA_ONSTACK)) == 0 &&
                 !sigismember(&action.sa_mask, SIGUSR1);
    }
    stack_t stack;
    memset(&stack, 1, sizeof stack);
    sigaltstack(NULL, &stack);
    count += stack.ss_flags == SS_DISABLE && stack.ss_size == 0 && stack.ss_sp == NULL;
    return count;
}

static void *worker(void *argument) {
    *(int *)argument = untouched();
    return NULL;
}

int main(void) {
    int other;
    printf("%d\n", untouched());
    pthread_join(start_with(worker, &other), NULL);
    printf("%d\n", other);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(untouched());
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));

    /* The old handler that is returned, and flags and mask of a default action. */
    printf("%d ", signal(SIGSEGV, SIG_IGN) == SIG_DFL);
    raise(SIGSEGV);
    printf("%d\n", signal(SIGSEGV, SIG_DFL) == SIG_IGN);
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    action.sa_flags = SA_NODEFER;
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGABRT, NULL, &before);
    printf("%d %d %d\n", before.sa_handler == SIG_DFL, (before.sa_flags & SA_NODEFER) != 0,
           sigismember(&before.sa_mask, SIGUSR1));
    printf("%d\n", sysv_signal(SIGFPE, SIG_DFL) == SIG_DFL);

    /* A handler that asks for an alternate stack where there is none, and what it is told about that. */
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    printf("%d\n", (int)seen);

    static char own[65536];
    stack_t stack = {.ss_sp = own, .ss_size = sizeof own}, old;
    sigaltstack(&stack, &old);
    printf("%d ", old.ss_flags == SS_DISABLE);
    sigaltstack(NULL, &old);
    printf("%d ", old.ss_sp == own && old.ss_size == sizeof own && old.ss_flags == 0);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, &old);
    printf("%d ", old.ss_sp == own);
    sigaltstack(NULL, &old);
    printf("%d\n", old.ss_flags == SS_DISABLE);
    return 0;
}
