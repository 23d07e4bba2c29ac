/* Each thread writes its part, waits at a barrier, and reads everybody's. Correct. */
#include <omp.h>
#include <stdio.h>

static int parts[4], sums[4];

int main(void) {
#pragma omp parallel num_threads(4)
    {
        int me = omp_get_thread_num();
        parts[me] = me;
#pragma omp barrier
        for (int i = 0; i < omp_get_num_threads(); i++) sums[me] += parts[i];
    }
    int same = sums[0] == sums[1] && sums[1] == sums[2] && sums[2] == sums[3];
    printf("%d\n", same ? sums[0] : -1);
    return 0;
}
