// A web server in small: a pool of threads, each request opens, measures and sends a file, logs through a stream, and keeps a cache of
// duplicated descriptors. Its clients are threads of its own, over loopback.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
enum { WORKERS = 4, CLIENTS = 4, REQUESTS = 10, QUEUE = 64 };
static struct sockaddr_in address;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int queue[QUEUE], head, tail, done, numbers, bytes_served;

static void *client(void *which) {
    for (int i = 0; i < REQUESTS; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        char text[256];
        long got, all = 0;
        if (connect(fd, (struct sockaddr *)&address, sizeof address)) return 0;
        snprintf(text, sizeof text, "GET %s\n", (i + (long)which) % 3 ? "served.txt" : ".");
        if (send(fd, text, strlen(text), 0) < 0) return 0;
        while ((got = recv(fd, text, sizeof text, 0)) > 0) all += got;
        close(fd);
        pthread_mutex_lock(&mutex);
        bytes_served += all;
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}

static void answer(int fd, FILE *log) {
    char name[64] = "", text[64];
    long got = recv(fd, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = 0;
    sscanf(text, "GET %63s", name);
    struct stat about;
    if (stat(name, &about) == 0 && S_ISDIR(about.st_mode)) {
        DIR *folder = opendir(name);
        int entries = 0;
        while (readdir(folder)) entries++;
        closedir(folder);
        send(fd, "folder", entries > 1 ? 6 : 0, MSG_NOSIGNAL);
    } else {
        int file = open(name, O_RDONLY), again = dup(file);
        off_t from = 0;
        sendfile(fd, again, &from, about.st_size);
        fprintf(log, "%s %d\n", name, file);
        close(again);
        close(file);
    }
    shutdown(fd, SHUT_WR);
    close(fd);
}

static void *worker(void *unused) {
    FILE *log = fopen("/dev/null", "w");
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (head == tail && !done) pthread_cond_wait(&filled, &mutex);
        if (head == tail) break;
        int fd = queue[head++ % QUEUE];
        numbers = numbers * 7 + fd;
        pthread_mutex_unlock(&mutex);
        FILE *settings = fopen("served.txt", "r");
        char line[64];
        if (!settings || !fgets(line, sizeof line, settings)) puts("no settings");
        answer(fd, log);
        fclose(settings);
    }
    pthread_mutex_unlock(&mutex);
    fclose(log);
    return unused;
}

int main(void) {
    pthread_t clients[CLIENTS], workers[WORKERS];
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), watch = epoll_create1(EPOLL_CLOEXEC), wake = eventfd(0, 0), ends[2];
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 64) || pipe2(ends, O_CLOEXEC)) return 2;
    getsockname(listener, (struct sockaddr *)&address, &length);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(watch, EPOLL_CTL_ADD, listener, &event);
    for (int i = 0; i < WORKERS; i++) pthread_create(&workers[i], 0, worker, 0);
    for (long i = 0; i < CLIENTS; i++) pthread_create(&clients[i], 0, client, (void *)i);
    for (int i = 0; i < CLIENTS * REQUESTS; i++) {
        if (epoll_wait(watch, &event, 1, -1) != 1) return 3;
        int fd = accept4(listener, 0, 0, SOCK_CLOEXEC);
        pthread_mutex_lock(&mutex);
        queue[tail++ % QUEUE] = fd;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&mutex);
    }
    for (int i = 0; i < CLIENTS; i++) pthread_join(clients[i], 0);
    pthread_mutex_lock(&mutex);
    done = 1;
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < WORKERS; i++) pthread_join(workers[i], 0);
    close(wake);
    printf("%d bytes, descriptors %d\n", bytes_served, numbers);
}
