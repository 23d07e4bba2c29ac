/* Fibonacci numbers by tasks: whoever waits for its tasks reads what other threads wrote. Correct: taskwait orders them. */
#include <omp.h>
#include <stdio.h>

static int fib(int n) {
    if (n < 2) return n;
    int a, b;
#pragma omp task shared(a)
    a = fib(n - 1);
#pragma omp task shared(b)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

int main(void) {
    int result = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    result = fib(10);
    printf("%d\n", result);
    return 0;
}
