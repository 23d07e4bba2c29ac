/* Livelock (definition 7): each thread takes its lock, fails to get the other's, and gives way; the second
 * thread takes the locks in the order of the first, so one of them always gets both. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void *polite(void *which) {
    (void)which;
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    done++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    static int which;
    pthread_create(&one, NULL, polite, NULL);
    pthread_create(&two, NULL, polite, &which);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", done);
    return 0;
}
