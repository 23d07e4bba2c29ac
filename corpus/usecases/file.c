/* Use case 7, the file interface: a file may be written only between open and close. Worker does not wait for main to open it; the calls themselves are safe for threads.
 * -DCORRECT signals the opening. */
#include "corpus.h"

typedef struct {
    int is_open, written, lost;
} file;

MUTEX(internal);
static file the_file;

file *open_file(file *f) {
    LOCK(internal);
    f->is_open = 1;
    UNLOCK(internal);
    return f;
}

void write_file(file *f, int data) {
    LOCK(internal);
    if (f->is_open)
        f->written += data;
    else
        f->lost += data;
    UNLOCK(internal);
}

void close_file(file *f) {
    LOCK(internal);
    f->is_open = 0;
    UNLOCK(internal);
}

#ifdef CORRECT
MUTEX(m);
COND(c);
static int opened;
#endif

static void worker(void) {
#ifdef CORRECT
    LOCK(m);
    while (!opened) pthread_cond_wait(&c, &m);
    UNLOCK(m);
#else
    turn(1);
#endif
    write_file(&the_file, 5); // PROPERTY:2
}

int main(void) {
    pthread_t thread = start(worker);
    open_file(&the_file); // PROPERTY:1
#ifdef CORRECT
    LOCK(m);
    opened = 1;
    pthread_cond_signal(&c);
    UNLOCK(m);
#endif
    finish(thread);
    close_file(&the_file);
    printf("%d %d\n", the_file.written, the_file.lost);
    return 0;
}
