/* Starvation (definition 6): the polite thread is unlucky a few times only; then the other one has finished. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

enum { ROUNDS = 3 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t go, tried;
static int work;

static void *polite(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        sem_wait(&go);
        int failed = pthread_mutex_trylock(&m); // STARVES
        if (!failed) pthread_mutex_unlock(&m);
        sem_post(&tried);
    }
    pthread_mutex_lock(&m);
    work++;
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_t one;
    sem_init(&go, 0, 0);
    sem_init(&tried, 0, 0);
    pthread_create(&one, NULL, polite, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&m); // WINS
        sem_post(&go);
        sem_wait(&tried);
        work++;
        pthread_mutex_unlock(&m);
    }
    pthread_join(one, NULL);
    printf("%d\n", work > 0);
    return 0;
}
