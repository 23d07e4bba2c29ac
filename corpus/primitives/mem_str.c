/* Library functions that read and write the program's memory: mem*, str*, printf to a buffer, qsort, strtok_r, each thread on its own buffers.
 * Clean: no buffer is shared. What they touch must be in the trace, as a compiler instruments only calls it expands itself. */
#include "corpus.h"
#include <string.h>
#include <strings.h>

static char results[2][128];

static int compare(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }

static void *worker(void *argument) {
    char *out = argument;
    volatile size_t n = 12; /* keeps the calls from being expanded */
    char a[64], b[64], c[64];
    memset(a, 'x', n);
    a[n] = 0;
    memcpy(b, a, n + 1);
    memmove(b + 1, b, n + 1);
    strncpy(c, "north", 10);
    strcat(c, "-");
    strncat(c, "south", n);
    char *dash = strchr(c, '-');
    size_t sum = strlen(b) + (size_t)(dash - c) + strspn(c, "north") + (size_t)(strstr(c, "south") - c) + strnlen(a, 5);
    sum += (size_t)(memcmp(a, b, n) == 0) + (size_t)(strcmp(a, b) < 0) + (size_t)(strncasecmp("AB", "ab", n) == 0);
    sum += (memchr(a, 'x', n) == a) + (strrchr(b, 'x') == b + 12) + (strpbrk(c, "-") == dash);
    char word[] = "edcba";
    qsort(word, 5, 1, compare);
    char *rest = NULL, list[] = "p,q";
    char *p = strtok_r(list, ",", &rest), *q = strtok_r(NULL, ",", &rest);
    snprintf(out, 128, "%zu %s %s%s %s", sum, word, p, q, c);
    return NULL;
}

int main(void) {
    pthread_t one = start_with(worker, results[0]), two = start_with(worker, results[1]);
    finish(one);
    finish(two);
    puts(results[0]);
    puts(results[1]);
    return 0;
}
