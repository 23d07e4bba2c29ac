/* Figures 1.3 and 6.1: worker writes to a file that main opens after starting worker. The order open - write is only a matter of luck.
 * The built-in checks see the race on the handle f. The races on what it points to follow from it: nothing orders the publication. */
#include "corpus.h"

typedef struct {
    int is_open, written;
} file;

static file the_file;
static file *volatile f;
static int failed;

static file *open_file(const char *name) {
    (void)name;
    the_file.written = 0; // RACE:written:A
    the_file.is_open = 1; // RACE:is_open:A
    return &the_file;
}

static int write_file(file *to, int data) {
    if (!to || !to->is_open) return -1; // RACE:is_open:B
    to->written += data;                // RACE:written:B
    return 0;
}

static void close_file(file *to) { to->is_open = 0; }

static int compute(void) {
    turn(1);
    return 5;
}

static void worker(void) {
    int data = compute();
    failed = write_file(f, data); // RACE:f:B
}

int main(void) {
    pthread_t thread = start(worker);
    f = open_file("foo"); // RACE:f:A
    finish(thread);
    close_file(f);
    printf("%d %d\n", failed, the_file.written);
    return 0;
}
