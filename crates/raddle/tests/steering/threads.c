/* Threads from words: each argument is a thread, each letter one operation of it.
 *   a..d  read shared variable a..d into the thread's register
 *   A..D  write the register plus one to shared variable A..D
 *   l u   lock and unlock the first mutex
 *   m v   lock and unlock the second mutex
 *   x     an atomic operation on memory of the thread's own
 *   o     write down the thread's number
 * At the end the variables, the registers and what was written down are printed. Every letter is one visible operation. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS_MAX = 8, NOTES_MAX = 1 << 15 };
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static atomic_int variables[4], own[THREADS_MAX][16], noted;
static char notes[NOTES_MAX + 1];
static int registers[THREADS_MAX], count;
static char **words;

static void *run(void *argument) {
    int me = (int)(long)argument, value = 0;
    for (const char *at = words[me]; *at; at++) {
        switch (*at) {
        case 'l': pthread_mutex_lock(&first); break;
        case 'u': pthread_mutex_unlock(&first); break;
        case 'm': pthread_mutex_lock(&second); break;
        case 'v': pthread_mutex_unlock(&second); break;
        case 'x': atomic_fetch_add(&own[me][0], 1); break;
        case 'o': {
            int place = atomic_fetch_add(&noted, 1);
            if (place < NOTES_MAX) notes[place] = (char)('1' + me);
            break;
        }
        default:
            if (*at >= 'a' && *at <= 'd') value = atomic_load(&variables[*at - 'a']);
            else atomic_store(&variables[*at - 'A'], value + 1);
        }
    }
    registers[me] = value;
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS_MAX];
    words = argv + 1;
    count = argc - 1 < THREADS_MAX ? argc - 1 : THREADS_MAX;
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) printf("%d ", variables[i]);
    for (int i = 0; i < count; i++) printf("%d ", registers[i]);
    printf("%s\n", notes);
    return 0;
}
