/* Figure 2.3: a barrier between the first and the second task of two threads. Each reads in its second task what the other wrote in its first. Clean. */
#include "corpus.h"

static pthread_barrier_t b;
static int pre[2], post[2];

static void thread_1(void) {
    pre[0] = 1;
    pthread_barrier_wait(&b);
    post[0] = pre[1];
}

static void thread_2(void) {
    pre[1] = 2;
    pthread_barrier_wait(&b);
    post[1] = pre[0];
}

int main(void) {
    pthread_barrier_init(&b, NULL, 2);
    RUN(thread_1, thread_2);
    printf("%d %d\n", post[0], post[1]);
    return 0;
}
