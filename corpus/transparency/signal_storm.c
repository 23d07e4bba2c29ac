/* Signals of several kinds reach a thread faster than it can return to its own code, so that some wait while the runtime is at work.
 * Each handler runs to its end, none is run without its signal, errno survives. */
#include "corpus.h"
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#define KINDS 4
static const int kinds[KINDS] = {SIGUSR1, SIGUSR2, SIGHUP, SIGURG};
static atomic_int handled[KINDS], sent[KINDS], done;
static pthread_t target;

static void handler(int number) {
    int before = errno;
    for (int i = 0; i < KINDS; i++)
        if (kinds[i] == number) atomic_fetch_add(&handled[i], 1);
    errno = before;
}

static void storm(void) {
    for (int round = 0; round < 3000; round++)
        for (int i = 0; i < KINDS; i++) {
            pthread_kill(target, kinds[i]);
            atomic_fetch_add(&sent[i], 1);
        }
    atomic_store(&done, 1);
}

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    for (int i = 0; i < KINDS; i++) sigaction(kinds[i], &action, NULL);
    target = pthread_self();
    pthread_t thread = start(storm);
    unsigned long work = 0;
    int kept = 1;
    errno = 77;
    while (!atomic_load(&done)) {
        char block[64];
        memset(block, (int)work, sizeof block);
        work += (unsigned char)block[work % sizeof block];
        kept &= errno == 77;
    }
    finish(thread);
    int some = 1, bounded = 1;
    for (int i = 0; i < KINDS; i++) {
        some &= atomic_load(&handled[i]) > 0;
        bounded &= atomic_load(&handled[i]) <= atomic_load(&sent[i]);
    }
    printf("%d %d %d\n", some, bounded, kept);
    return 0;
}
