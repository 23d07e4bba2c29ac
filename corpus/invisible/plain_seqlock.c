/* A sequence lock in an object that was built by the plain compiler. The reader checks that it never sees halves of two versions; when it has seen the
 * last one, it also reads what the writer prepared before, by plain accesses. Correct: the version is released and acquired. */
#include "corpus.h"
#include "plain_seq.h"
#include <sched.h>

enum { VERSIONS = 50 };
static struct plain_seq seq;
static long prepared;

static void writer(void) {
    prepared = 7;
    for (long i = 1; i <= VERSIONS; i++) plain_seq_write(&seq, i, -i);
}

static void reader(void) {
    long pair[2];
    while (plain_seq_read(&seq, pair) != 2 * VERSIONS) {
        MUST(pair[0] + pair[1] == 0);
        sched_yield();
    }
    printf("%ld %ld\n", pair[0] + pair[1], prepared);
}

int main(void) {
    RUN(writer, reader);
    return 0;
}
