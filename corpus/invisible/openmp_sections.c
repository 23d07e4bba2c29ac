/* Two sections in two threads, with a counter under a lock of OpenMP's. Correct. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    int a = 0, b = 0, counter = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        {
            a = 1;
            for (int i = 0; i < 100; i++) {
                omp_set_lock(&lock);
                counter++;
                omp_unset_lock(&lock);
            }
        }
#pragma omp section
        {
            b = 2;
            for (int i = 0; i < 100; i++) {
                omp_set_lock(&lock);
                counter++;
                omp_unset_lock(&lock);
            }
        }
    }
    omp_destroy_lock(&lock);
    printf("%d %d\n", a + b, counter);
    return 0;
}
