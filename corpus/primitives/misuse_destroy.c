/* Destroying a mutex that is held: the call fails with EBUSY in glibc and is undefined by the standard. A misuse report is due. */
#include "corpus.h"

static pthread_mutex_t m;

int main(void) {
    pthread_mutex_init(&m, NULL);
    LOCK(m);
    int result = pthread_mutex_destroy(&m); // MISUSE:destroy
    UNLOCK(m);
    pthread_mutex_destroy(&m);
    printf("%s\n", result == EBUSY ? "busy" : "destroyed");
    return 0;
}
