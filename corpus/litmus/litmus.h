/* What the litmus tests share: short names for C11 atomics, and orders that the manifests choose with -D.
 * Every test prints one line with the values that its threads read; the manifest lists the lines that the C11 axioms allow. */
#ifndef LITMUS_H
#define LITMUS_H
#include "corpus.h"
#include <stdatomic.h>

#define rlx memory_order_relaxed
#define acq memory_order_acquire
#define rel memory_order_release
#define acq_rel memory_order_acq_rel
#define sc memory_order_seq_cst

#define LOAD(location, order) atomic_load_explicit(&(location), order)
#define STORE(location, value, order) atomic_store_explicit(&(location), value, order)
#define FENCE(order) atomic_thread_fence(order)

/* The orders of stores and loads; a manifest may change them. */
#ifndef ST
#define ST rlx
#endif
#ifndef LD
#define LD rlx
#endif

/* A test runs once, or as often as LITMUS_ROUNDS in the environment says. Between two rounds there are no threads, so what `reset` stores is the initial value of the next. */
CORPUS_UNUSED static int litmus_left = 1;

__attribute__((constructor)) static void litmus_read_environment(void) {
    const char *text = getenv("LITMUS_ROUNDS");
    if (text) litmus_left = atoi(text);
}

#define ROUNDS_WITH(reset) while (--litmus_left > 0 && (reset, 1))

#endif
