// Producer and consumer: a bounded queue with a mutex and two condition variables. Threads wait for each other all the time.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 256 };

static int slots[SLOTS];
static int head, tail, used, items;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;

static void *produce(void *unused) {
    (void)unused;
    for (int i = 1; i <= items; i++) {
        pthread_mutex_lock(&lock);
        while (used == SLOTS) pthread_cond_wait(&not_full, &lock);
        slots[head] = i;
        head = (head + 1) % SLOTS;
        if (used++ == 0) pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    items = argc > 1 ? atoi(argv[1]) : 300000;
    pthread_t producer;
    pthread_create(&producer, NULL, produce, NULL);
    long sum = 0;
    for (int i = 0; i < items; i++) {
        pthread_mutex_lock(&lock);
        while (used == 0) pthread_cond_wait(&not_empty, &lock);
        sum += slots[tail];
        tail = (tail + 1) % SLOTS;
        if (used-- == SLOTS) pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
    }
    pthread_join(producer, NULL);
    printf("%ld\n", sum);
    return sum == (long)items * (items + 1) / 2 ? 0 : 1;
}
