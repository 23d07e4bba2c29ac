/* Two parallel loops, the second one over what the first one wrote, in other threads. Correct: each loop ends with a barrier of libgomp's. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    int values[100];
    int sum = 0, again = 0;
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < 100; i++) values[i] = i;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
    for (int i = 0; i < 100; i++) sum += values[99 - i];
    for (int i = 0; i < 100; i++) again += values[i];
    printf("%d %d\n", sum, again);
    return 0;
}
