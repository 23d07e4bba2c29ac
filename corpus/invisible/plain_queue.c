/* A queue of one producer and one consumer, for an object that is never rebuilt. On x86 its release and acquire are plain moves: the object has no
 * locked instruction. */
#include "plain_queue.h"

int plain_push(struct plain_queue *queue, void *item) {
    unsigned tail = queue->tail;
    if (tail - __atomic_load_n(&queue->head, __ATOMIC_ACQUIRE) == PLAIN_QUEUE_ROOM) return 0;
    queue->slots[tail % PLAIN_QUEUE_ROOM] = item;
    __atomic_store_n(&queue->tail, tail + 1, __ATOMIC_RELEASE);
    return 1;
}

void *plain_pop(struct plain_queue *queue) {
    unsigned head = queue->head;
    if (__atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE) == head) return 0;
    void *item = queue->slots[head % PLAIN_QUEUE_ROOM];
    __atomic_store_n(&queue->head, head + 1, __ATOMIC_RELEASE);
    return item;
}
