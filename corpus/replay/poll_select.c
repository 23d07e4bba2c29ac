/* Standard input through poll, select and read in one thread, ioctl on a pipe in another: the system calls that a demo must hold, with input from outside. */
#include "corpus.h"
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>

static char text[64];
static size_t length_;
static int available;

static void reads_input(void) {
    for (;;) {
        struct pollfd wait_for = {.fd = 0, .events = POLLIN};
        MUST(poll(&wait_for, 1, 1000) == 1);
        fd_set set;
        FD_ZERO(&set);
        FD_SET(0, &set);
        MUST(select(1, &set, NULL, NULL, NULL) == 1);
        ssize_t got = read(0, text + length_, 5);
        if (got <= 0) break;
        length_ += (size_t)got;
    }
}

static void asks_pipe(void) {
    int ends[2];
    MUST(pipe(ends) == 0);
    MUST(write(ends[1], "abc", 3) == 3);
    MUST(ioctl(ends[0], FIONREAD, &available) == 0);
    close(ends[0]);
    close(ends[1]);
}

int main(void) {
    RUN(reads_input, asks_pipe);
    printf("%zu %d\n%s", length_, available, text);
    return 0;
}
