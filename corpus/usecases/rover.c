/* Use case 3, the rover's uplink: an update must be followed by a commit and its acknowledgement before anything else happens on the connection.
 * Two tasks share the connection. Every call is safe for threads, so there is no data race, but in the faulty version the tasks' sequences can mix.
 * -DCORRECT makes each task hold the uplink for its whole sequence. */
#include "corpus.h"

typedef struct {
    int open, updates, commits, acknowledged;
} connection;

MUTEX(internal);
MUTEX(uplink);
static connection the_connection;
int header;

connection *open_connection(const char *name) {
    (void)name;
    LOCK(internal);
    the_connection.open = 1;
    UNLOCK(internal);
    return &the_connection;
}

int close_connection(connection *c) {
    LOCK(internal);
    c->open = 0;
    int complete = c->commits == c->acknowledged;
    UNLOCK(internal);
    return complete;
}

void cancel_transmission(connection *c) {
    LOCK(internal);
    c->open = 0;
    UNLOCK(internal);
}

void write_buffer(connection *c, int data) {
    LOCK(internal);
    c->updates += data;
    UNLOCK(internal);
}

void commit_buffer(connection *c) {
    LOCK(internal);
    c->commits++;
    UNLOCK(internal);
}

void acknowledge(void) {
    LOCK(internal);
    the_connection.acknowledged++;
    UNLOCK(internal);
}

static connection *link_;

static void send(int data) {
#ifdef CORRECT
    LOCK(uplink);
#endif
    write_buffer(link_, data); // PROPERTY:1
    commit_buffer(link_);
    acknowledge();
#ifdef CORRECT
    UNLOCK(uplink);
#endif
}

static void camera(void) { send(1); }
static void drill(void) {
    turn(1);
    send(10);
}

int main(void) {
    (void)uplink;
    (void)cancel_transmission;
    link_ = open_connection("orbiter");
    RUN(camera, drill);
    int complete = close_connection(link_);
    printf("%d %d\n", the_connection.updates, complete);
    return 0;
}
