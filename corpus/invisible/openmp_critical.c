/* Four threads raise a counter in a critical section. Correct: libgomp's lock is not a pthread mutex that could be interposed. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    int counter = 0;
#pragma omp parallel num_threads(4)
    for (int i = 0; i < 100; i++) {
#pragma omp critical
        counter++;
    }
    printf("%d\n", counter);
    return 0;
}
