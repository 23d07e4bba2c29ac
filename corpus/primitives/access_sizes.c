/* Plain accesses of every size and shape: 1 to 16 bytes, float, double, long double, structure copies, bit-fields, arrays, stack and heap.
 * Clean: each thread has its own copy of everything. */
#include "corpus.h"
#include <stdint.h>

struct shape {
    uint8_t a;
    uint16_t b;
    uint32_t c;
    uint64_t d;
    unsigned __int128 e;
    float f;
    double g;
    long double h;
    unsigned low : 3, high : 5;
    char text[40];
};

static struct shape shapes[2];

static void *worker(void *argument) {
    struct shape *s = argument, *heap = malloc(sizeof *heap), stack;
    for (int i = 0; i < 3; i++) {
        s->a++, s->b++, s->c++, s->d++, s->e++;
        s->f += 0.5f, s->g += 0.25, s->h += 1;
        s->low++, s->high += 2;
        s->text[i] = 'z';
    }
    *heap = *s;
    stack = *heap;
    stack.text[0] = 'y';
    *s = stack;
    free(heap);
    return NULL;
}

int main(void) {
    pthread_t a = start_with(worker, &shapes[0]), b = start_with(worker, &shapes[1]);
    finish(a);
    finish(b);
    struct shape *s = &shapes[1];
    printf("%d %d %d %d %d %.2f %.2f %.1f %d %d %s\n", s->a, s->b, (int)s->c, (int)s->d, (int)s->e, s->f, s->g, (double)s->h, s->low, s->high, s->text);
    return 0;
}
