/* Threads from words, for exhaustive search: each argument is a thread, each letter with its digits one instruction of it.
 *   L0    load variable 0 into the thread's register
 *   S01   store the register plus 1 to variable 0
 *   A0    add one to variable 0; the register has the value before
 *   l0 u0 lock and unlock mutex 0
 *   t02   try mutex 0, and skip 2 instructions if it is taken
 *   w0 r0 x0  write lock, read lock, unlock of readers-writer lock 0
 *   p0 v0 wait for semaphore 0 (which begins with 1), and post it
 *   b0    barrier 0 of two threads; the register of one of them becomes 1
 *   c01   wait for condition 0 with mutex 1
 *   g0 h0 signal and broadcast condition 0
 *   z2    skip 2 instructions if the register is zero
 *   X0    abort
 *   s0    wait in a loop until variable 0 is not zero
 * At the end the variables and the registers are printed. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 8, OBJECTS = 4 };
static pthread_mutex_t mutexes[OBJECTS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                           PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t rwlocks[OBJECTS] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER,
                                            PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
static pthread_cond_t conditions[OBJECTS] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER,
                                             PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static sem_t semaphores[OBJECTS];
static pthread_barrier_t barriers[OBJECTS];
static atomic_int variables[OBJECTS];
static int registers[THREADS_MAX];
static char **words;

static int digits_of(char letter) {
    switch (letter) {
    case 'S': case 't': case 'c': return 2;
    default: return 1;
    }
}

static const char *skip(const char *at, int count) {
    for (; count > 0 && *at; count--) at += 1 + digits_of(*at);
    return at;
}

static void *run(void *argument) {
    int me = (int)(long)argument, value = 0;
    const char *at = words[me];
    while (*at) {
        char letter = *at;
        int i = at[1] - '0', n = digits_of(letter) == 2 ? at[2] - '0' : 0;
        at = skip(at, 1);
        switch (letter) {
        case 'L': value = atomic_load(&variables[i]); break;
        case 'S': atomic_store(&variables[i], value + n); break;
        case 'A': value = atomic_fetch_add(&variables[i], 1); break;
        case 'l': pthread_mutex_lock(&mutexes[i]); break;
        case 'u': pthread_mutex_unlock(&mutexes[i]); break;
        case 't': if (pthread_mutex_trylock(&mutexes[i]) != 0) at = skip(at, n); break;
        case 'w': pthread_rwlock_wrlock(&rwlocks[i]); break;
        case 'r': pthread_rwlock_rdlock(&rwlocks[i]); break;
        case 'x': pthread_rwlock_unlock(&rwlocks[i]); break;
        case 'p': sem_wait(&semaphores[i]); break;
        case 'v': sem_post(&semaphores[i]); break;
        case 'b': if (pthread_barrier_wait(&barriers[i]) != 0) value = 1; break;
        case 'c': pthread_cond_wait(&conditions[i], &mutexes[n]); break;
        case 'g': pthread_cond_signal(&conditions[i]); break;
        case 'h': pthread_cond_broadcast(&conditions[i]); break;
        case 'z': if (value == 0) at = skip(at, i); break;
        case 's': while (atomic_load(&variables[i]) == 0) {} break;
        default: abort();
        }
    }
    registers[me] = value;
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS_MAX];
    words = argv + 1;
    int count = argc - 1 < THREADS_MAX ? argc - 1 : THREADS_MAX;
    for (int i = 0; i < OBJECTS; i++) {
        sem_init(&semaphores[i], 0, 1);
        pthread_barrier_init(&barriers[i], NULL, 2);
    }
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < OBJECTS; i++) printf("%d ", variables[i]);
    for (int i = 0; i < count; i++) printf("%d ", registers[i]);
    printf("\n");
    return 0;
}
