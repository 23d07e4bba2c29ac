/* A bounded producer-consumer queue of pointers: one mutex, one condition, the waiting loops written as the book says.
 * What a thread did before `put` happens before what another does after the `get` that returns the same element. */
#ifndef CORPUS_QUEUE_H
#define CORPUS_QUEUE_H
#include "corpus.h"

#define QUEUE_CAPACITY 8

typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int count, first;
    void *items[QUEUE_CAPACITY];
} queue;

#define QUEUE_INITIALIZER {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, {0}}

CORPUS_UNUSED static void put(queue *q, void *item) {
    pthread_mutex_lock(&q->mutex);
    while (q->count == QUEUE_CAPACITY) pthread_cond_wait(&q->changed, &q->mutex);
    q->items[(q->first + q->count) % QUEUE_CAPACITY] = item;
    q->count++;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mutex);
}

CORPUS_UNUSED static void *get(queue *q) {
    pthread_mutex_lock(&q->mutex);
    while (q->count == 0) pthread_cond_wait(&q->changed, &q->mutex);
    void *item = q->items[q->first];
    q->first = (q->first + 1) % QUEUE_CAPACITY;
    q->count--;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mutex);
    return item;
}

#endif
