/* Time, random bytes, process id and a random branch: everything that differs from run to run and must be the same in a replay. */
#include "corpus.h"
#include <sys/random.h>
#include <sys/time.h>

static unsigned char bytes[4];
static long nanoseconds, microseconds, seconds;
static int branch;

static void asks(void) {
    struct timespec now;
    struct timeval day;
    MUST(getrandom(bytes, sizeof bytes, 0) == sizeof bytes);
    clock_gettime(CLOCK_REALTIME, &now);
    gettimeofday(&day, NULL);
    nanoseconds = now.tv_nsec;
    microseconds = day.tv_usec;
    seconds = (long)time(NULL) % 1000;
    branch = bytes[0] % 2 ? 1 : 2;
}

int main(void) {
    RUN(asks);
    printf("%02x%02x%02x%02x %ld %ld %ld %d %d\n", bytes[0], bytes[1], bytes[2], bytes[3], nanoseconds, microseconds, seconds, (int)getpid(), branch);
    return 0;
}
