/* hawknl: the network library's shutdown takes the library lock and then each socket's lock; closing a socket takes the socket's lock and then the library lock.
 * Timed so that the close is over before the shutdown begins. */
#include "corpus.h"

enum { SOCKETS = 2 };

typedef struct {
    pthread_mutex_t lock;
    int open;
} socket_entry;

MUTEX(library);
static socket_entry sockets[SOCKETS] = {{PTHREAD_MUTEX_INITIALIZER, 1}, {PTHREAD_MUTEX_INITIALIZER, 1}};
static int open_sockets = SOCKETS;

static void close_socket(int n) {
    LOCK(sockets[n].lock);
    if (sockets[n].open) {
        sockets[n].open = 0;
        LOCK(library); // DEADLOCK:1
        open_sockets--;
        UNLOCK(library);
    }
    UNLOCK(sockets[n].lock);
}

static void shut_down(void) {
    LOCK(library);
    for (int n = 0; n < SOCKETS; n++) {
        LOCK(sockets[n].lock); // DEADLOCK:2
        if (sockets[n].open) {
            sockets[n].open = 0;
            open_sockets--;
        }
        UNLOCK(sockets[n].lock);
    }
    UNLOCK(library);
}

static void closer(void) { close_socket(1); }
static void stopper(void) {
    turn(1);
    shut_down();
}

int main(void) {
    RUN(closer, stopper);
    printf("%d\n", open_sockets);
    return 0;
}
