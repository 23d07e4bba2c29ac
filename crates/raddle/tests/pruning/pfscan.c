/* The shape of pfscan: threads take work from a queue and count matches. With BUG one of them counts without the lock. */
#include <pthread.h>
#include <stddef.h>
static int left = 2, matches, lines;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, matched = PTHREAD_MUTEX_INITIALIZER;
static void *scan(void *unused) {
    int got;
    do {
        pthread_mutex_lock(&queue);
        got = left > 0;
        if (got) left--;
        pthread_mutex_unlock(&queue);
        if (got) {
            pthread_mutex_lock(&matched);
            matches++;
            pthread_mutex_unlock(&matched);
#ifdef BUG
            lines++;
#endif
        }
    } while (got);
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, scan, NULL);
    pthread_create(&b, NULL, scan, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
