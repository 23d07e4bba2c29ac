/* Livelock (definition 7): each thread takes its lock, fails to get the other's, and gives way; they meet at a
 * barrier in each round, so that they always fail. The number of rounds is bounded so that the run ends. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int done;

enum { ROUNDS = 100 };
static pthread_barrier_t meet;

static void *polite(void *which) {
    pthread_mutex_t *mine = which ? &b : &a, *other = which ? &a : &b;
    for (int round = 1; round <= ROUNDS; round++) {
        pthread_mutex_lock(mine);
        pthread_barrier_wait(&meet);
        if (pthread_mutex_trylock(other) == 0) { // LIVELOCK
            done++;
            pthread_mutex_unlock(other);
        }
        pthread_barrier_wait(&meet);
        pthread_mutex_unlock(mine);
    }
    return NULL;
}

int main(void) {
    pthread_t one, two;
    static int which;
    pthread_barrier_init(&meet, NULL, 2);
    pthread_create(&one, NULL, polite, NULL);
    pthread_create(&two, NULL, polite, &which);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", done);
    return 0;
}
