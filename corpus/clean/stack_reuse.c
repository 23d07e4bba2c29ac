/* Detached threads one after the other get the same stack from the system's cache. Clean: a new thread's stack has no past, though the addresses are the same and no join orders them. */
#include "corpus.h"
#include <semaphore.h>

static sem_t done;
static int results[20];

static void *body(void *argument) {
    int numbers[64];
    for (int i = 0; i < 64; i++) numbers[i] = (int)(long)argument;
    int sum = 0;
    for (int i = 0; i < 64; i++) sum += numbers[i];
    results[(long)argument] = sum;
    sem_post(&done);
    return NULL;
}

int main(void) {
    sem_init(&done, 0, 0);
    for (long i = 0; i < 20; i++) pthread_detach(start_with(body, (void *)i));
    for (int i = 0; i < 20; i++) sem_wait(&done);
    int total = 0;
    for (int i = 0; i < 20; i++) total += results[i];
    printf("%d\n", total);
    return 0;
}
