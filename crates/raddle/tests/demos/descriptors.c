// Every function that makes, moves or frees the number of a descriptor, in two threads at once, while a third takes numbers for sockets.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
static int both[2] = {1, 1};
static void count(int *sum, int number) { *sum = (int)((unsigned)*sum * 31u + (unsigned)number + 2u); }
static void *files(void *argument) {
    int *sum = argument, ends[2];
    char name[] = "madeXXXXXX", other[] = "madeXXXXXX.txt", text[8];
    for (int i = 0; i < 3; i++) {
        int a = open("served.txt", O_RDONLY), b = openat(AT_FDCWD, "served.txt", O_RDONLY | O_CLOEXEC);
        int c = dup(a), d = fcntl(b, F_DUPFD_CLOEXEC, 20), e = creat(i ? "one" : "two", 0600);
        count(sum, a), count(sum, b), count(sum, c), count(sum, d), count(sum, e);
        if (!(fcntl(d, F_GETFD) & FD_CLOEXEC) || (fcntl(a, F_GETFD) & FD_CLOEXEC)) puts("wrong flags");
        if (pread(c, text, 5, 0) != 5 || strncmp(text, "hello", 5)) puts("wrong file");
        dup2(a, 40), dup3(b, 41, O_CLOEXEC);
        if (pread(41, text, 5, 0) != 5) puts("wrong duplicate");
        close_range(40, 41, 0);
        if (pipe(ends) || write(ends[1], "pipe", 4) != 4 || read(ends[0], text, 4) != 4) puts("wrong pipe");
        int f = dup(ends[0]);
        if (write(ends[1], "more", 4) != 4 || read(f, text, 4) != 4 || strncmp(text, "more", 4)) puts("wrong pipe");
        count(sum, ends[0]), count(sum, ends[1]), count(sum, f);
        FILE *stream = fopen("served.txt", "r"), *added = fopen("log", "a");
        fputs("x", added);
        count(sum, fileno(stream)), count(sum, fileno(added)), count(sum, (int)ftell(added) >= 1);
        stream = freopen("served.txt", "r+", stream);
        count(sum, fileno(stream));
        DIR *folder = opendir(".");
        count(sum, dirfd(folder));
        count(sum, open("no such file", O_RDONLY));
        closedir(folder), fclose(added), fclose(stream);
        close(a), close(b), close(c), close(d), close(e), close(f), close(ends[0]), close(ends[1]);
    }
    int g = mkstemp(name), h = mkostemps(other, 4, O_CLOEXEC);
    count(sum, g), count(sum, h);
    unlink(name), unlink(other), close(g), close(h);
    return 0;
}
int main(void) {
    pthread_t threads[2];
    int sockets = 1;
    sigset_t none;
    sigemptyset(&none);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, files, &both[i]);
    for (int i = 0; i < 6; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0), event = eventfd(0, 0), memory = memfd_create("memory", 0);
        int timer = timerfd_create(CLOCK_MONOTONIC, 0), signals = signalfd(-1, &none, 0), changes = inotify_init1(0);
        count(&sockets, fd), count(&sockets, event), count(&sockets, memory);
        count(&sockets, timer), count(&sockets, signals), count(&sockets, changes);
        close(fd), close(event), close(memory), close(timer), close(signals), close(changes);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    unlink("one"), unlink("two"), unlink("log");
    printf("%d %d %d\n", both[0], both[1], sockets);
}
