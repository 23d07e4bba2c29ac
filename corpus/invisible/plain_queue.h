#ifndef PLAIN_QUEUE_H
#define PLAIN_QUEUE_H
enum { PLAIN_QUEUE_ROOM = 4 };
struct plain_queue {
    unsigned head, tail;
    void *slots[PLAIN_QUEUE_ROOM];
};
int plain_push(struct plain_queue *queue, void *item);
void *plain_pop(struct plain_queue *queue);
#endif
