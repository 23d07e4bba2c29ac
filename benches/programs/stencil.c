// Stencil: two threads relax the halves of a grid and meet at a barrier after every step.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef THREADS
#define THREADS 2
#endif
enum { N = 512 };
static double grid[2][N][N];
static int steps;
static pthread_barrier_t barrier;

static void *relax(void *argument) {
    int self = (int)(long)argument;
    int low = 1 + self * (N - 2) / THREADS, high = 1 + (self + 1) * (N - 2) / THREADS;
    for (int s = 0; s < steps; s++) {
        double(*from)[N] = grid[s % 2], (*to)[N] = grid[(s + 1) % 2];
        for (int i = low; i < high; i++)
            for (int j = 1; j < N - 1; j++)
                to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv) {
    steps = argc > 1 ? atoi(argv[1]) : 60;
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < N; i++) grid[g][i][0] = grid[g][0][i] = 100;
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_t threads[THREADS];
    for (long t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, relax, (void *)t);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) sum += grid[steps % 2][i][j];
    printf("%.3f\n", sum);
    return 0;
}
