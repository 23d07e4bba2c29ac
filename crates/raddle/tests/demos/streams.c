// Input through streams of the C library, from standard input, from a command and from a device: lines, blocks, letters, formats, what is pushed
// back, and the end of the input. A second thread takes letters of the same stream.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *letters(void *unused) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&mutex);
        int letter = getc_unlocked(stdin);
        pthread_mutex_unlock(&mutex);
        printf("letter %d\n", letter);
    }
    return unused;
}
int main(void) {
    char line[64], block[16], word[32];
    unsigned char noise[8];
    char *whole = NULL;
    size_t room = 0;
    int number = 0;
    pthread_t thread;
    if (fgets(line, sizeof line, stdin)) printf("line %s", line);
    if (scanf("%d %31s ", &number, word) == 2) printf("number %d word %s\n", number, word);
    int first = getchar();
    ungetc(first, stdin);
    size_t got = fread(block, 1, 5, stdin);
    printf("block %.*s\n", (int)got, block);
    if (getline(&whole, &room, stdin) > 0) printf("whole %s", whole);
    pthread_create(&thread, 0, letters, 0);
    pthread_mutex_lock(&mutex);
    first = getc(stdin);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, 0);
    printf("own %d\n", first);
    while (fgets(line, sizeof line, stdin)) printf("more %s", line);
    printf("end %d error %d\n", feof(stdin) != 0, ferror(stdin) != 0);
    clearerr(stdin);
    printf("end %d\n", feof(stdin) != 0);
    FILE *device = fopen("/dev/urandom", "r");
    if (!device || fread(noise, 1, sizeof noise, device) != sizeof noise) return 2;
    for (unsigned i = 0; i < sizeof noise; i++) printf("%02x", noise[i]);
    printf(" number %d\n", fileno(device));
    fclose(device);
    FILE *command = popen("od -An -N4 -tx4 /dev/urandom", "r");
    if (!command || !fgets(line, sizeof line, command)) return 3;
    printf("command %s", line);
    pclose(command);
    FILE *scratch = tmpfile();
    if (!scratch) return 4;
    printf("scratch %d\n", fileno(scratch));
    fclose(scratch);
    free(whole);
    return 0;
}
