/* Functions of the C library as accesses to the program's memory. One thread makes the call that is named by the first argument, another one writes the
 * memory that the call reads or writes. `racy`: nothing orders the two. `clean`: each does it under the same mutex. `list`: the names. */
#include "corpus.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <wchar.h>

/* Volatile where the compiler must not compute the call away. */
static volatile int letter = 'x';
static volatile size_t size = 4;
static volatile char zero;
char b[256] = "text", c[256], text[16] = "text", path[8192], *line;
int numbers[4] = {1, 1, 1, 1}, file, ends[2], pair[2];
unsigned seed = 1;
wchar_t wide[64] = L"text";
void *sink;
long total;
double real, part;
size_t room;
socklen_t length = sizeof(int);
struct iovec piece = {b, 4};
struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
struct pollfd polled;
fd_set set;
FILE *stream;
struct stat about;
struct utsname system_name;
struct sysinfo information;
struct rusage usage;
struct rlimit limit;
struct tms cpu;
time_t seconds;
struct timespec moment;
struct timeval day;
struct tm calendar;
cpu_set_t processors;

static void fill_pipe(void) { MUST(write(ends[1], "abcd", 4) == 4); }
static void fill_socket(void) { MUST(write(pair[1], "abcd", 4) == 4); }
static void fill_file(void) { MUST(write(file, "abcd", 4) == 4); }

static void fill_stream(void) {
    MUST(fputs("word\n", stream) >= 0);
    rewind(stream);
}

static void unlink_after(int fd) {
    close(fd);
    unlink(b);
}

static int compare(const void *x, const void *y) {
    (void)x, (void)y;
    return 0;
}

#define CALL(name, preparation, call, memory)                                                                           \
    static void prepare_##name(void) { preparation; }                                                                   \
    static void make_##name(void) { call; }                                                                     \
    static void *memory_##name(void) { return (void *)(memory); }
#include "calls.h"
#undef CALL

static const struct {
    const char *name;
    void (*prepare)(void), (*make)(void);
    void *(*memory)(void);
} calls[] = {
#define CALL(name, preparation, call, memory) {#name, prepare_##name, make_##name, memory_##name},
#include "calls.h"
#undef CALL
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int at, clean;
static char *memory;

static void call(void) {
    if (clean) pthread_mutex_lock(&lock);
    calls[at].make(); // RACE:call
    if (clean) pthread_mutex_unlock(&lock);
}

/* The same value again: the call is not to be disturbed. Not when it has closed the memory. */
static void change(void) {
    if (clean) pthread_mutex_lock(&lock);
    if (strcmp(calls[at].name, "fclose_stream")) *memory ^= zero; // RACE:change
    else if (!clean) fputc('x', stream);
    if (clean) pthread_mutex_unlock(&lock);
}

static void second(void) {
    turn(1);
    call();
}

int main(int count, char **arguments) {
    int number = sizeof calls / sizeof *calls;
    if (count < 2 || !strcmp(arguments[1], "list")) {
        for (at = 0; at < number; at++) puts(calls[at].name);
        return 0;
    }
    while (at < number && strcmp(calls[at].name, arguments[1])) at++;
    MUST(at < number && count > 2);
    clean = !strcmp(arguments[2], "clean");
    char name[] = "/tmp/raddle-calls-XXXXXX";
    MUST((file = mkstemp(name)) >= 0 && !unlink(name) && !pipe(ends) && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    MUST((stream = tmpfile()));
    calls[at].prepare();
    memory = calls[at].memory();
    RUN(change, second);
    return 0;
}
