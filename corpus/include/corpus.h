/* What nearly every corpus program needs: threads that start together, and a way to choose the order that a plain run shows.
 *
 * Everything is static: a program that includes this header brings no library and no shared state of its own (the one
 * variable is written before main and only read afterwards). Macros are used where the call must carry the program's own line. */
#ifndef CORPUS_H
#define CORPUS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
#define CORPUS_UNUSED [[maybe_unused]]
#else
#define CORPUS_UNUSED __attribute__((unused))
#endif

CORPUS_UNUSED static int corpus_turn_us = 40000;

__attribute__((constructor)) static void corpus_read_environment(void) {
    const char *text = getenv("CORPUS_TURN_MS");
    if (text) corpus_turn_us = atoi(text) * 1000;
}

/* Sleeps n units, so that what other threads do in earlier turns has happened. Orders the run, synchronises nothing. */
CORPUS_UNUSED static void turn(int n) {
    if (corpus_turn_us > 0) usleep((useconds_t)(n * corpus_turn_us));
}

/* Reads its argument in a way that no optimiser removes. */
CORPUS_UNUSED static inline void use(long value) { __asm__ volatile("" : : "r"(value)); }

/* A deadline for timed operations, ms from now. */
CORPUS_UNUSED static struct timespec deadline(clockid_t clock, int ms) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += (long)ms * 1000000L;
    t.tv_sec += t.tv_nsec / 1000000000L;
    t.tv_nsec %= 1000000000L;
    return t;
}

CORPUS_UNUSED static void *corpus_body(void *body) {
    ((void (*)(void))body)();
    return NULL;
}

CORPUS_UNUSED static pthread_t start(void (*body)(void)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, corpus_body, (void *)body)) abort();
    return thread;
}

CORPUS_UNUSED static pthread_t start_with(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument)) abort();
    return thread;
}

CORPUS_UNUSED static void finish(pthread_t thread) { pthread_join(thread, NULL); }

CORPUS_UNUSED static void corpus_run(int count, void (**bodies)(void)) {
    pthread_t threads[16];
    for (int i = 0; i < count; i++) threads[i] = start(bodies[i]);
    for (int i = 0; i < count; i++) finish(threads[i]);
}

/* RUN(a, b, c): start the functions as threads in this order, wait for all of them. */
#define RUN(...)                                                             \
    do {                                                                     \
        void (*corpus_bodies[])(void) = {__VA_ARGS__};                       \
        corpus_run((int)(sizeof corpus_bodies / sizeof corpus_bodies[0]), corpus_bodies); \
    } while (0)

#define MUTEX(m) static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER
#define COND(c) static pthread_cond_t c = PTHREAD_COND_INITIALIZER
#define LOCK(m) pthread_mutex_lock(&(m))
#define UNLOCK(m) pthread_mutex_unlock(&(m))

/* Stops the program if an operation did not do what this program is about. */
#define MUST(condition)                                                            \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);        \
            _exit(99);                                                             \
        }                                                                          \
    } while (0)

#endif
