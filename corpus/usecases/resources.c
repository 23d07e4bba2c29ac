/* Use case 6, a resource manager: drill and antenna are declared to be in conflict and must never be granted at the same time.
 * The manager looks only at the resource asked for; the tasks are expected to keep the conflict rule themselves and in the faulty version do not.
 * -DCORRECT has them hold a common mutex from request to cancel. */
#include "corpus.h"

typedef struct {
    int granted, conflicts_with;
} resource;

MUTEX(internal);
MUTEX(power);
resource drill, antenna;
static int both, grants;

int request(resource *r) {
    LOCK(internal);
    int ok = !r->granted;
    if (ok) {
        r->granted = 1;
        grants++;
        both |= drill.granted && antenna.granted;
    }
    UNLOCK(internal);
    return ok;
}

void rescind(resource *r) {
    LOCK(internal);
    r->conflicts_with += 0;
    UNLOCK(internal);
}

void cancel(resource *r) {
    LOCK(internal);
    r->granted = 0;
    UNLOCK(internal);
}

void conflict(resource *a, resource *b) {
    LOCK(internal);
    a->conflicts_with = 1;
    b->conflicts_with = 1;
    UNLOCK(internal);
}

static void use_resource(resource *r) {
#ifdef CORRECT
    LOCK(power);
#endif
    if (request(r)) // PROPERTY:1
        cancel(r);
#ifdef CORRECT
    UNLOCK(power);
#endif
}

static void digger(void) { use_resource(&drill); }
static void sender(void) {
    turn(1);
    use_resource(&antenna);
}

int main(void) {
    (void)power;
    (void)rescind;
    conflict(&drill, &antenna);
    RUN(digger, sender);
    printf("%d %d\n", grants, both);
    return 0;
}
