/* Two mutexes whose memory is used again for two others, taken in the opposite order by a later thread: the addresses suggest a cycle, the objects have none. */
#include "corpus.h"

static pthread_mutex_t room[2];

static void forwards(void) {
    LOCK(room[0]);
    LOCK(room[1]);
    UNLOCK(room[1]);
    UNLOCK(room[0]);
}

static void backwards(void) {
    LOCK(room[1]);
    LOCK(room[0]);
    UNLOCK(room[0]);
    UNLOCK(room[1]);
}

int main(void) {
    for (int i = 0; i < 2; i++) pthread_mutex_init(&room[i], NULL);
    RUN(forwards, forwards);
    for (int i = 0; i < 2; i++) pthread_mutex_destroy(&room[i]);
    for (int i = 0; i < 2; i++) pthread_mutex_init(&room[i], NULL);
    RUN(backwards, backwards);
    for (int i = 0; i < 2; i++) pthread_mutex_destroy(&room[i]);
    printf("done\n");
    return 0;
}
