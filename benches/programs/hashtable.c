// Hash table under one mutex: two threads insert and look up. Many lock operations, short critical sections.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 1024, THREADS = 2 };

typedef struct node {
    struct node *next;
    unsigned key, count;
} node;

static node *table[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int operations;

static void count(unsigned key) {
    pthread_mutex_lock(&lock);
    node **bucket = &table[key % BUCKETS];
    node *found = *bucket;
    while (found && found->key != key) found = found->next;
    if (!found) {
        found = malloc(sizeof *found);
        *found = (node){ *bucket, key, 0 };
        *bucket = found;
    }
    found->count++;
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument) {
    unsigned seed = (unsigned)(long)argument;
    for (int i = 0; i < operations; i++) {
        seed = seed * 1664525u + 1013904223u;
        count((seed >> 8) % 4096);
    }
    return NULL;
}

int main(int argc, char **argv) {
    operations = argc > 1 ? atoi(argv[1]) : 200000;
    pthread_t threads[THREADS];
    for (long t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, work, (void *)(t + 1));
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    unsigned long total = 0;
    for (int b = 0; b < BUCKETS; b++)
        for (node *n = table[b]; n; n = n->next) total += n->count;
    printf("%lu\n", total);
    return total == (unsigned long)operations * THREADS ? 0 : 1;
}
