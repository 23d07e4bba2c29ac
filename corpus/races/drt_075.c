/* 75: two posters, one of which writes x before its post; a sem_trywait that succeeds and then a read of x. In the observed order both posts came first and happens-before
 * orders everything; the read could as well have been let in by the other post alone. */
#include "corpus.h"
#include <semaphore.h>

static sem_t s;
static int x, entered;

static void writer(void) {
    x = 1; // RACE:x:A
    sem_post(&s);
}

static void other_poster(void) { sem_post(&s); }

static void reader(void) {
    turn(1);
    if (sem_trywait(&s) == 0) {
        use(x); // RACE:x:B
        entered = 1;
    }
}

int main(void) {
    sem_init(&s, 0, 0);
    RUN(writer, other_poster, reader);
    printf("%d %d\n", x, entered);
    return 0;
}
