// Sort: two threads merge-sort the halves of an array, then one merges them. Reads and writes of fresh addresses.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned *data, *spare;

static void merge(size_t low, size_t middle, size_t high) {
    size_t i = low, j = middle, k = low;
    while (i < middle && j < high) spare[k++] = data[i] <= data[j] ? data[i++] : data[j++];
    while (i < middle) spare[k++] = data[i++];
    while (j < high) spare[k++] = data[j++];
    for (k = low; k < high; k++) data[k] = spare[k];
}

static void sort(size_t low, size_t high) {
    if (high - low < 2) return;
    size_t middle = low + (high - low) / 2;
    sort(low, middle);
    sort(middle, high);
    merge(low, middle, high);
}

typedef struct {
    size_t low, high;
} range;

static void *sort_range(void *argument) {
    range *r = argument;
    sort(r->low, r->high);
    return NULL;
}

int main(int argc, char **argv) {
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 600000;
    data = malloc(n * sizeof *data);
    spare = malloc(n * sizeof *spare);
    unsigned seed = 1;
    for (size_t i = 0; i < n; i++) data[i] = seed = seed * 1664525u + 1013904223u;
    range halves[2] = { { 0, n / 2 }, { n / 2, n } };
    pthread_t threads[2];
    for (int t = 0; t < 2; t++) pthread_create(&threads[t], NULL, sort_range, &halves[t]);
    for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
    merge(0, n / 2, n);
    for (size_t i = 1; i < n; i++)
        if (data[i - 1] > data[i]) return 1;
    printf("%u %u\n", data[0], data[n - 1]);
    return 0;
}
