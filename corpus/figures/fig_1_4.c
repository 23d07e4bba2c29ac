/* Figure 1.4: the file program with an explicit order, open before write, by signal and wait. Clean. */
#include "corpus.h"

typedef struct {
    int is_open, written;
} file;

MUTEX(m);
COND(v);
static int opened;
static file the_file, *f;
static int failed;

static file *open_file(const char *name) {
    (void)name;
    the_file.written = 0;
    the_file.is_open = 1;
    return &the_file;
}

static int write_file(file *to, int data) {
    if (!to || !to->is_open) return -1;
    to->written += data;
    return 0;
}

static void close_file(file *to) { to->is_open = 0; }

static void worker(void) {
    int data = 5;
    LOCK(m);
    while (!opened) pthread_cond_wait(&v, &m);
    UNLOCK(m);
    failed = write_file(f, data);
}

int main(void) {
    pthread_t thread = start(worker);
    turn(1);
    f = open_file("foo");
    LOCK(m);
    opened = 1;
    pthread_cond_signal(&v);
    UNLOCK(m);
    finish(thread);
    close_file(f);
    printf("%d %d\n", failed, the_file.written);
    return 0;
}
