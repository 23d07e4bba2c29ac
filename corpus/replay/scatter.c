/* Messages in several pieces, with the sender's name and a descriptor in the ancillary data (recvmsg), and a stream read into several pieces (readv): all of it comes from
 * outside as far as the system knows, although the senders are threads of the same program. A replay has to give every piece. */
#include "corpus.h"
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static int receiver, listener;
static struct sockaddr_un place, stream_place;

static socklen_t name(struct sockaddr_un *address, const char *what) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int bytes = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "raddle-%d-%s", (int)getpid(), what);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)bytes);
}

static void *send_message(void *argument) {
    (void)argument;
    struct sockaddr_un own;
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    bind(fd, (struct sockaddr *)&own, name(&own, "sender"));
    struct iovec piece = {"one two three", 13};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_name = &place, .msg_namelen = name(&place, "receiver"), .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    if (sendmsg(fd, &message, 0) != 13) abort();
    close(fd);
    return NULL;
}

static void *send_stream(void *argument) {
    (void)argument;
    struct sockaddr_un to;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&to, name(&to, "stream"))) abort();
    if (send(fd, "alpha beta", 10, 0) != 10) abort();
    close(fd);
    return NULL;
}

static void take_message(void) {
    char first[4] = "", second[5] = "", third[32] = "";
    struct iovec pieces[3] = {{first, 3}, {second, 4}, {third, 31}};
    struct sockaddr_un from = {0};
    char control[128];
    struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = pieces, .msg_iovlen = 3, .msg_control = control, .msg_controllen = sizeof control};
    long bytes = recvmsg(receiver, &message, 0);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int fd = -1;
    if (head && head->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(head), sizeof fd);
    const char *who = strrchr(from.sun_path + 1, '-');
    printf("%ld [%s|%s|%s] from %s, descriptor %s, flags %d\n", bytes, first, second, third, who ? who + 1 : "?", fcntl(fd, F_GETFD) >= 0 ? "open" : "closed", message.msg_flags);
}

static void take_stream(void) {
    char first[7] = "", second[8] = "";
    struct iovec pieces[2] = {{first, 6}, {second, 7}};
    int fd = accept(listener, NULL, NULL);
    long bytes = readv(fd, pieces, 2);
    printf("%ld [%s|%s]\n", bytes, first, second);
    close(fd);
}

int main(void) {
    receiver = socket(AF_UNIX, SOCK_DGRAM, 0);
    bind(receiver, (struct sockaddr *)&place, name(&place, "receiver"));
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr *)&stream_place, name(&stream_place, "stream"));
    listen(listener, 1);
    pthread_t one = start_with(send_message, NULL), two = start_with(send_stream, NULL);
    take_message();
    take_stream();
    finish(one);
    finish(two);
    return 0;
}
