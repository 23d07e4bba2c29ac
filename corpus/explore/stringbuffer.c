/* The string buffer of an old class library: append asks the other buffer for its length and then for its characters, and lets go of its lock in between.
 * If the other is shortened in the meantime, the copy runs past its end; here an assertion says so. */
#include "corpus.h"
#include <assert.h>
#include <string.h>

typedef struct {
    pthread_mutex_t lock;
    int length;
    char text[32];
} buffer;

static buffer source = {PTHREAD_MUTEX_INITIALIZER, 5, "abcde"}, target = {PTHREAD_MUTEX_INITIALIZER, 0, ""};

static int length(buffer *b) {
    LOCK(b->lock);
    int n = b->length;
    UNLOCK(b->lock);
    return n;
}

static void get_chars(buffer *b, int count, char *out) {
    LOCK(b->lock);
    assert(count <= b->length); // ASSERT:1
    for (int i = 0; i < count; i++) out[i] = b->text[i];
    UNLOCK(b->lock);
}

static void append(buffer *to, buffer *from) {
    LOCK(to->lock);
    int count = length(from);
    get_chars(from, count, to->text + to->length);
    to->length += count;
    UNLOCK(to->lock);
}

static void erase(buffer *b) {
    LOCK(b->lock);
    b->length = 0;
    UNLOCK(b->lock);
}

static void appender(void) { append(&target, &source); }
static void eraser(void) {
    turn(1);
    erase(&source);
}

int main(void) {
    RUN(appender, eraser);
    printf("%d %s\n", target.length, target.text);
    return 0;
}
