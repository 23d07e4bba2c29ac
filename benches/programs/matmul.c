// Compute kernel: two threads multiply matrices of doubles. Nearly all events are plain reads; threads meet only at join.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef THREADS
#define THREADS 2
#endif
static int n;
static double *a, *b, *c;

static void *rows(void *argument) {
    int self = (int)(long)argument;
    for (int i = self; i < n; i += THREADS)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
    return NULL;
}

int main(int argc, char **argv) {
    n = argc > 1 ? atoi(argv[1]) : 320;
    a = malloc(sizeof *a * n * n);
    b = malloc(sizeof *b * n * n);
    c = malloc(sizeof *c * n * n);
    for (int i = 0; i < n * n; i++) {
        a[i] = i % 7;
        b[i] = i % 5;
    }
    pthread_t threads[THREADS];
    for (long t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, rows, (void *)t);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    double sum = 0;
    for (int i = 0; i < n * n; i++) sum += c[i];
    printf("%.0f\n", sum);
    return 0;
}
