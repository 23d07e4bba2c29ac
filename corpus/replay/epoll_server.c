/* An epoll server: one thread serves three clients over loopback TCP, the clients are threads of the same program. Replies depend only on the requests, their order on the network.
 * For record and replay: epoll_wait, accept, recv and send must be replayed, with the peer gone. Sorted output, so that a plain run is always the same. */
#include "corpus.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { CLIENTS = 3 };
static int listener, port;
static char replies[CLIENTS][16];
MUTEX(m);
static int served;

static void server(void) {
    int poll_fd = epoll_create1(0), closed = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &event);
    while (closed < CLIENTS) {
        struct epoll_event ready[4];
        int count = epoll_wait(poll_fd, ready, 4, -1);
        for (int i = 0; i < count; i++) {
            int fd = ready[i].data.fd;
            if (fd == listener) {
                int client = accept(listener, NULL, NULL);
                event.data.fd = client;
                epoll_ctl(poll_fd, EPOLL_CTL_ADD, client, &event);
                continue;
            }
            char request[16];
            ssize_t got = recv(fd, request, sizeof request - 1, 0);
            if (got <= 0) {
                close(fd);
                closed++;
                continue;
            }
            request[0] = (char)(request[0] + 'A' - 'a');
            MUST(send(fd, request, (size_t)got, 0) == got);
            LOCK(m);
            served++;
            UNLOCK(m);
        }
    }
    close(poll_fd);
}

static void *client(void *argument) {
    long me = (long)argument;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = (in_port_t)port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    MUST(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    char request[2] = {(char)('a' + me), 0};
    MUST(send(fd, request, 1, 0) == 1);
    ssize_t got = recv(fd, replies[me], sizeof replies[me] - 1, 0);
    MUST(got == 1);
    close(fd);
    return NULL;
}

int main(void) {
    listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    MUST(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    MUST(listen(listener, CLIENTS) == 0);
    MUST(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    port = address.sin_port;
    pthread_t serving = start(server), clients[CLIENTS];
    for (long i = 0; i < CLIENTS; i++) clients[i] = start_with(client, (void *)i);
    for (int i = 0; i < CLIENTS; i++) finish(clients[i]);
    finish(serving);
    printf("%s%s%s %d\n", replies[0], replies[1], replies[2], served);
    return 0;
}
