/* Data race (survey, definition 2): two threads add to a counter, nothing protects it. */
#include <pthread.h>
#include <stdio.h>

static int counter;

static void *add(void *amount) {
    counter += *(int *)amount; // RACE:counter
    return NULL;
}

int main(void) {
    pthread_t one, two;
    int a = 1, b = 2;
    pthread_create(&one, NULL, add, &a);
    pthread_create(&two, NULL, add, &b);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", counter > 0);
    return 0;
}
