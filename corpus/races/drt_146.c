/* 146: try operations on a read-write lock that a writer holds until both have been made. They fail, and the code goes on without the lock: races on one and three.
 * The second attempts succeed and their accesses to two and four are fine. */
#include "corpus.h"
#include <semaphore.h>

static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static sem_t tried;
static int one, two, three, four, failures[2];

static void holder(void) {
    pthread_rwlock_wrlock(&l);
    one = 1;   // RACE:one:A
    two = 1;
    three = 1; // RACE:three:A
    four = 1;
    sem_wait(&tried);
    sem_wait(&tried);
    pthread_rwlock_unlock(&l);
}

static void try_writer(void) {
    turn(1);
    if (pthread_rwlock_trywrlock(&l) == 0) {
        pthread_rwlock_unlock(&l);
    } else {
        one = 2; // RACE:one:B
        failures[0] = 1;
    }
    sem_post(&tried);
    while (pthread_rwlock_trywrlock(&l)) usleep(500);
    two = 2;
    pthread_rwlock_unlock(&l);
}

static void try_reader(void) {
    turn(1);
    if (pthread_rwlock_tryrdlock(&l) == 0) {
        pthread_rwlock_unlock(&l);
    } else {
        use(three); // RACE:three:B
        failures[1] = 1;
    }
    sem_post(&tried);
    while (pthread_rwlock_tryrdlock(&l)) usleep(500);
    use(four);
    pthread_rwlock_unlock(&l);
}

int main(void) {
    sem_init(&tried, 0, 0);
    RUN(holder, try_writer, try_reader);
    printf("%d %d %d %d %d %d\n", one, two, three, four, failures[0], failures[1]);
    return 0;
}
