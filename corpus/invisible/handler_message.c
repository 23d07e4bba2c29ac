/* A thread prepares a message and sends another thread a signal, whose handler reads it. Correct: the handler runs after the signal was sent, and the
 * receiver touches the message nowhere else before the sender is joined. */
#include "corpus.h"
#include <semaphore.h>
#include <signal.h>
#include <string.h>

/* Not static: glibc declares some of these calls as leaf functions, and gcc keeps static variables in registers across those. */
int message, copy;
static sem_t handled;
static pthread_t receiver_thread;

static void handler(int number) {
    (void)number;
    copy = message + 1;
    sem_post(&handled);
}

static void *receiver(void *unused) {
    while (sem_wait(&handled)) continue;
    return unused;
}

static void sender(void) {
    message = 41;
    MUST(!pthread_kill(receiver_thread, SIGUSR1));
}

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    MUST(!sigaction(SIGUSR1, &action, NULL) && !sem_init(&handled, 0, 0));
    receiver_thread = start_with(receiver, NULL);
    RUN(sender);
    finish(receiver_thread);
    printf("%d\n", copy);
    return 0;
}
