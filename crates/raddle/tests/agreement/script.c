/* Runs a script of operations per thread: one argument a thread, operations separated by blanks.
 *
 *   Rk Wk       plain read, write of variable k
 *   ljo sjo xjo atomic load, store, fetch_add of location j with order o
 *   fo          fence with order o
 *   Lj Uj       lock, unlock mutex j
 *
 * Orders: r relaxed, a acquire, l release, b acq_rel, s seq_cst. Each variable has lines of its own, so that a report names
 * the variable by its line. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

static long v0, v1, v2;
static atomic_int a0, a1;
static pthread_mutex_t m0 = PTHREAD_MUTEX_INITIALIZER, m1 = PTHREAD_MUTEX_INITIALIZER;

static memory_order order(char name) {
    switch (name) {
    case 'a': return memory_order_acquire;
    case 'l': return memory_order_release;
    case 'b': return memory_order_acq_rel;
    case 's': return memory_order_seq_cst;
    default: return memory_order_relaxed;
    }
}

static void read_plain(char which) {
    long value;
    switch (which) {
    case '0': value = v0; break; // VAR:0
    case '1': value = v1; break; // VAR:1
    default: value = v2; break;  // VAR:2
    }
    (void)value;
}

static void write_plain(char which) {
    switch (which) {
    case '0': v0 = 1; break; // VAR:0
    case '1': v1 = 1; break; // VAR:1
    default: v2 = 1; break;  // VAR:2
    }
}

static void *run(void *script) {
    for (const char *at = script; *at; at++) {
        atomic_int *location = at[1] == '0' ? &a0 : &a1;
        pthread_mutex_t *mutex = at[1] == '0' ? &m0 : &m1;
        switch (*at) {
        case 'R': read_plain(at[1]); break;
        case 'W': write_plain(at[1]); break;
        case 'l': (void)atomic_load_explicit(location, order(at[2])); break;
        case 's': atomic_store_explicit(location, 1, order(at[2])); break;
        case 'x': atomic_fetch_add_explicit(location, 1, order(at[2])); break;
        case 'f': atomic_thread_fence(order(at[1])); break;
        case 'L': pthread_mutex_lock(mutex); break;
        case 'U': pthread_mutex_unlock(mutex); break;
        default: abort();
        }
        while (at[1] && *at != ' ') at++;
    }
    return NULL;
}

int main(int count, char **scripts) {
    /* Two accesses at the very same instant can miss each other in the shadow: one processor, so that there are none. */
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    pthread_t threads[8];
    for (int i = 1; i < count; i++) pthread_create(&threads[i - 1], NULL, run, scripts[i]);
    for (int i = 1; i < count; i++) pthread_join(threads[i - 1], NULL);
    return 0;
}
