// A server that holds a file open for each request while it accepts the next one: the numbers of files and of connections come from the
// same table, and who opens first is decided by arrival.
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
enum { CLIENTS = 3, REQUESTS = 4 };
static struct sockaddr_in address;
static void *client(void *unused) {
    for (int i = 0; i < REQUESTS; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        char answer[8] = "";
        if (connect(fd, (struct sockaddr *)&address, sizeof address)) return 0;
        if (read(fd, answer, 5) != 5 || strcmp(answer, "hello")) printf("bad answer: %s\n", answer);
        close(fd);
    }
    return unused;
}
static void *serve(void *connection) {
    char text[8];
    int file = open("served.txt", O_RDONLY), fd = (int)(long)connection;
    long bytes = read(file, text, 5);
    if (write(fd, text, bytes) != bytes) puts("short write");
    close(file);
    close(fd);
    return 0;
}
int main(void) {
    pthread_t clients[CLIENTS], servers[CLIENTS * REQUESTS];
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), sum = 0;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 16)) return 2;
    getsockname(listener, (struct sockaddr *)&address, &length);
    for (int i = 0; i < CLIENTS; i++) pthread_create(&clients[i], 0, client, 0);
    for (int i = 0; i < CLIENTS * REQUESTS; i++) {
        int held = open("served.txt", O_RDONLY), fd = accept(listener, 0, 0);
        sum = sum * 7 + fd;
        pthread_create(&servers[i], 0, serve, (void *)(long)fd);
        close(held);
    }
    for (int i = 0; i < CLIENTS; i++) pthread_join(clients[i], 0);
    for (int i = 0; i < CLIENTS * REQUESTS; i++) pthread_join(servers[i], 0);
    printf("descriptors %d\n", sum);
}
