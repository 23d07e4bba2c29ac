/* The running example of Wang et al. (ATVA 2008): two threads, three variables and two locks. The race on y needs the second thread to look at x
 * before the first has written it. */
#include <pthread.h>
#include <stddef.h>
static int x, y, z;
static pthread_mutex_t f1 = PTHREAD_MUTEX_INITIALIZER, f2 = PTHREAD_MUTEX_INITIALIZER;
static void *first(void *unused) {
    pthread_mutex_lock(&f1);
    x++;
    pthread_mutex_unlock(&f1);
    y++;
    pthread_mutex_lock(&f2);
    z++;
    pthread_mutex_unlock(&f2);
    return unused;
}
static void *second(void *unused) {
    int c = 0;
    pthread_mutex_lock(&f2);
    z++;
    pthread_mutex_unlock(&f2);
    pthread_mutex_lock(&f1);
    if (x == 0) c = 1;
    pthread_mutex_unlock(&f1);
    if (c) {
        y++;
    } else {
        pthread_mutex_lock(&f2);
        z++;
        pthread_mutex_unlock(&f2);
    }
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, first, NULL);
    pthread_create(&b, NULL, second, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
