/* Every allocator entry point, used by two threads at once, each block written and freed by its own thread, one block handed over through a join.
 * Clean: allocators order nothing between threads, and here nothing needs it. */
#include "corpus.h"
#include <malloc.h>
#include <stdint.h>
#include <string.h>

static void *worker(void *unused) {
    (void)unused;
    char *a = malloc(24), *b = calloc(3, 8), *c = NULL, *d = aligned_alloc(64, 128), *e = memalign(32, 40), *f = valloc(100);
    MUST(posix_memalign((void **)&c, 128, 50) == 0);
    MUST(b[23] == 0 && (uintptr_t)d % 64 == 0 && (uintptr_t)c % 128 == 0);
    memset(a, 1, 24);
    a = realloc(a, 5000);
    MUST(a[23] == 1);
    a = reallocarray(a, 10, 10);
    char *s = strdup("text"), *t = strndup("longer", 4);
    MUST(malloc_usable_size(d) >= 128);
    strcpy(e, s);
    strcpy(f, t);
    strcpy(c, f);
    MUST(strcmp(c, "long") == 0);
    free(a), free(c), free(d), free(e), free(f), free(s), free(t);
    free(NULL);
    strcpy(b, "kept");
    return b;
}

int main(void) {
    void *first, *second;
    pthread_t one = start_with(worker, NULL), two = start_with(worker, NULL);
    pthread_join(one, &first);
    pthread_join(two, &second);
    printf("%s %s\n", (char *)first, (char *)second);
    free(first);
    free(second);
    return 0;
}
