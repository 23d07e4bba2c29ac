/* Violation of a contract: a map with a lock of its own, whose client looks for a key and then gets it, in two calls. Another thread
 * removes the key. Here it is late, and all is well. */
#include <corpus.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int keys[4] = {1, 1, 1, 1};

static int map_contains(int key) {
    pthread_mutex_lock(&m);
    int found = keys[key];
    pthread_mutex_unlock(&m);
    return found;
}

static int map_get(int key) {
    pthread_mutex_lock(&m);
    int value = keys[key];
    pthread_mutex_unlock(&m);
    return value;
}

static void map_remove(int key) {
    pthread_mutex_lock(&m);
    keys[key] = 0;
    pthread_mutex_unlock(&m);
}

static void *client(void *unused) {
    (void)unused;
    turn(1);
    int value = 1;
    if (map_contains(2)) value = map_get(2); // CONTRACT:1
    use(value);
    puts("1");
    return NULL;
}

int main(void) {
    pthread_t one;
    pthread_create(&one, NULL, client, NULL);
    turn(2);
    map_remove(2); // CONTRACT:2
    pthread_join(one, NULL);
    return 0;
}
